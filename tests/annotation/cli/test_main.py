"""The command line, in process; contracts/test_talk.py runs the real one."""

import io
import json
import sqlite3
from contextlib import closing

import pandas as pd
import pytest
from study_factory import write_set

from annotation.design.candidates import BOUNDED, GUESSERS, RANDOM_LISTS
from annotation.formats import FORMATS
from annotation.study.create import COLUMNS


def test_from_sets_to_tables(run, folder, tmp_path):
    made = run("create", "demo", "--set", folder, "--simulated", "--votes-per-item", "3")
    assert made.exit_code == 0
    assert "4 items" in made.output
    head, row = run("list").output.splitlines()
    assert head.split()[:4] == ["name", "task", "status", "items"]
    assert row.split()[:4] == ["demo", "recognition", "running", "4"]
    assert run("simulate", "demo", "--annotators", "3").exit_code == 0
    shown = run("progress", "demo").output
    assert shown.startswith("demo: 12 of 12 votes\n\nvotes  items\n0      0\n")
    assert "\nSimulated 1  4      –          simulated\n" in shown
    counted = json.loads(run("progress", "demo", "--json").stdout)
    items, people = counted["items"], counted["annotators"]
    assert counted["study"] == {"name": "demo", "votes": 12, "votes_wanted": 12}
    assert items[-1] == {"votes": 3, "items": 4}
    assert [(row["name"], row["done"]) for row in people] == [
        (f"Simulated {number}", 4) for number in (1, 2, 3)
    ]
    assert all(row["simulated"] for row in people)
    (first,) = json.loads(run("protocol", "demo", "--json").stdout)["versions"]
    assert (first["version"], first["changes"]) == (1, {})
    assert run("export", "demo", "--out", tmp_path / "votes.csv").exit_code == 0
    assert run("labels", "demo", "--out", tmp_path / "labels.parquet").exit_code == 0
    assert len(pd.read_csv(tmp_path / "votes.csv")) == 12
    assert len(pd.read_parquet(tmp_path / "labels.parquet")) == 4


def test_a_protocol_goes_with_what_its_lists_tell(run, folder):
    run("create", "demo", "--set", folder, "--list-size", "4")
    lists = json.loads(run("protocol", "demo", "--json").stdout)["lists"]
    assert (lists["n_lists"], lists["n_random"]) == (4, 4)
    assert {one["name"]: one["bounded"] for one in lists["guesses"]} == {
        name: name in BOUNDED for name in GUESSERS
    }
    assert {one["chance"] for one in lists["guesses"]} == {0.25}
    most = max(one["rate"] for one in lists["guesses"] if one["bounded"])
    random, reach = lists["said"]
    assert random.startswith(RANDOM_LISTS)
    assert f"{most:.1%} correct at best" in reach
    assert "(chance 25.0%)" in reach
    assert run("protocol", "demo").stdout.splitlines()[-2:] == lists["said"]
    run("create", "pairs", "--set", folder, "--task", "pair")
    assert json.loads(run("protocol", "pairs", "--json").stdout)["lists"] is None


def test_a_table_goes_to_standard_output(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("create", "demo", "--set", folder, "--simulated", "--votes-per-item", "1")
    run("simulate", "demo", "--annotators", "1")
    run("export", "demo", "--out", "votes.jsonl")
    printed = run("export", "demo", "--out", "-", "--format", "jsonl")
    assert (printed.exit_code, printed.stderr) == (0, "4 votes\n")
    assert printed.stdout == (tmp_path / "votes.jsonl").read_text()
    table = pd.read_csv(io.StringIO(run("labels", "demo", "--out", "-").stdout))
    assert len(table) == 4
    assert not (tmp_path / "-").exists()
    refused = run("export", "demo", "--out", "-", "--format", "hf")
    assert (refused.exit_code, "is a folder" in refused.stderr) == (2, True)
    assert run("export", "demo", "--out", "votes.xlsx").exit_code == 2
    run("export", "demo", "--out", "again.jsonl", "--image-store", "nowhere://pictures")
    assert (tmp_path / "again.jsonl").read_text() == printed.stdout  # no picture is in it


def test_a_study_is_made_of_its_file_and_what_is_given_goes_before(run, folder, tmp_path):
    file = folder.parent / "study.yaml"
    file.write_text("name: Filed\ntask: pair\ndecoy_rate: 0.5\nvotes_per_item: 3\nsets: [set]\n")
    assert "6 items (2 decoys)" in run("create", "--file", file).output
    assert "Filed  pair  running  6 " in run("list").output
    made = run("create", "Mine", "--file", file, "--votes-per-item", "2", "--dry-run")
    assert "2 annotators needed" in made.output
    file.write_text("name: Bären\ntask: pair\nsets: [set]\n", encoding="cp1252")
    old = run("create", "--file", file, "--dry-run")
    assert (old.exit_code, "read as Latin-1" in old.stderr) == (0, True)
    missing = run("create", "--from", tmp_path / "none.yaml")
    assert (missing.exit_code, "none.yaml does not exist." in missing.stderr) == (2, True)


def test_pairs(run, folder):
    assert "6 items (2 decoys)" in run(
        "create", "p", "--set", folder, "--task", "pair", "--decoy-rate", "0.5"
    ).output  # fmt: skip


def test_a_study_that_nobody_can_join_has_no_link(run, folder):
    assert "link /join/" in run("create", "asked", "--set", folder).output
    said = run("create", "made", "--set", folder, "--simulated").output
    assert "answered by simulated annotators" in said
    assert "link" not in said


def test_one_item_is_said_in_the_singular(run, tmp_path):
    write_set(tmp_path / "one", labels=("Cat",))
    said = run(
        "create", "s", "--set", tmp_path / "one", "--task", "pair", "--decoy-rate", "0"
    ).output
    assert "  1 item (0 decoys), 0 failed attacks left out" in said


def test_how_many_people_it_takes_is_said_before_and_after(run, folder):
    asked = ("create", "s", "--set", folder, "--task", "pair", "--decoy-rate", "0.5")
    asked += ("--votes-per-item", "2", "--setting", "max_views=1")
    for made in (run(*asked, "--dry-run"), run(*asked)):
        assert "\n4 annotators needed. Nobody meets an original twice" in made.output
    assert "annotators needed" not in run("create", "s").output


def test_every_format_is_listed_and_written(run, folder, tmp_path):
    run("create", "demo", "--set", folder, "--simulated", "--votes-per-item", "1")
    run("simulate", "demo", "--annotators", "1")
    listed = run("export", "--help").output
    for name, one in FORMATS.items():
        assert f" {name}: " in listed
        out = tmp_path / f"{name}{one.ending}"
        done = run("export", "demo", "--format", name, "--out", out)
        no_triplet = name == "triplets"  # one model makes none
        assert (done.exit_code, out.exists()) == (2 * no_triplet, not no_triplet), name
        assert (f" in {out}" in done.output) != no_triplet
    labels = tmp_path / "labels.jsonl"
    assert run("export", "demo", "--what", "labels", "--out", labels).exit_code == 0
    assert len(labels.read_text().splitlines()) == 4
    wrong = run("export", "demo", "--format", "hf", "--what", "votes", "--out", tmp_path / "x")
    assert (wrong.exit_code, "hf holds labels" in wrong.output) == (2, True)


def test_a_licence_goes_on_the_card_and_nowhere_else(run, folder, tmp_path):
    run("create", "demo", "--set", folder, "--simulated", "--votes-per-item", "1")
    asked = ("export", "demo", "--licence", "cc-by-4.0", "--out")
    assert run(*asked, tmp_path / "hf", "--format", "hf").exit_code == 0
    assert '\nlicense: "cc-by-4.0"\n' in (tmp_path / "hf/README.md").read_text()
    refused = run(*asked, tmp_path / "votes.csv")
    assert (refused.exit_code, "--format hf" in refused.stderr) == (2, True)
    assert not (tmp_path / "votes.csv").exists()


def test_a_dry_run_reports_and_writes_nothing(run, folder, tmp_path):
    rows = pd.read_parquet(folder / "manifest.parquet")
    rows = rows.assign(model="a", dataset="symbols", attack="invgrad")
    rows[list(COLUMNS)].to_csv(folder / "manifest.csv", index=False)
    there = set(tmp_path.rglob("*"))
    good = run("create", "demo", "--manifest", folder / "manifest.csv", "--dry-run")
    assert good.exit_code == 0
    assert "4 reconstructions\n" in good.output
    assert "4 items\n" in good.output
    assert "nothing was written" in good.output
    assert set(tmp_path.rglob("*")) == there
    told = run("create", "demo", "--manifest", folder / "manifest.csv", "--dry-run", "--json")
    assert told.stderr == "Dry run: nothing was written.\n"
    plan = json.loads(told.stdout)["plan"]
    counts = {row["text"]: row["n"] for row in plan if row["kind"] == "count"}
    assert (counts["reconstructions"], counts["items"]) == (4, 4)
    made = run("create", "demo", "--manifest", folder / "manifest.csv", "--json")
    study = json.loads(made.stdout)["study"]
    assert (made.exit_code, study["items"], study["decoys"]) == (0, 4, 0)
    (folder / "originals/image-002.png").unlink()
    bad = run("create", "again", "--manifest", folder / "manifest.csv", "--dry-run")
    assert bad.exit_code == 1
    assert "manifest.csv, row 3: " in bad.output
    nothing = run("create", "again", "--dry-run")
    assert (nothing.exit_code, "at least one" in nothing.output) == (1, True)
    assert "again" not in run("list").output


def test_mistakes_are_explained_and_fail(run, folder, tmp_path):
    unknown = run("progress", "demo")
    assert unknown.exit_code == 2
    assert "There are no studies at" in unknown.output
    said = [run("create", "demo", "--set", folder).output for _ in range(2)]
    twice = "2 studies are called 'demo' now: call each by its id."
    assert [twice in one for one in said] == [False, True]
    few = run("simulate", "demo", "--annotators", "-2")
    assert few.exit_code == 2, few.output
    assert "Several studies are called 'demo'" in run("progress", "demo").output
    nowhere = run("create", "x", "--set", tmp_path / "nowhere")
    assert (nowhere.exit_code, "run.json is missing" in nowhere.output) == (2, True)
    bad = run("create", "x", "--set", folder, "--votes-per-item", "0")
    assert (bad.exit_code, "Votes per item" in bad.output) == (2, True)
    database = run("list", "--database", "mysql://x/y")
    assert (database.exit_code, "not supported" in database.output) == (2, True)


@pytest.mark.parametrize("spec", ["{", "{}", '{"name": "s"}', "null"])
def test_damaged_settings_are_said_to_be_so(run, folder, tmp_path, spec):
    run("create", "s", "--set", folder)
    with closing(sqlite3.connect(tmp_path / "studies.db")) as database, database:
        database.execute("UPDATE study SET spec = ?", [spec])
    for command in (("list",), ("progress", "s"), ("export", "s", "--out", tmp_path / "v.csv")):
        told = run(*command)
        assert told.exit_code == 2
        assert "restore a backup" in told.output
        assert isinstance(told.exception, SystemExit)


def test_a_password_comes_from_a_file_and_never_from_the_command_line(run, folder, tmp_path):
    told = run("create", "demo", "--set", folder, "--setting", "password=open sesame")
    assert (told.exit_code, "--password-file" in told.output) == (2, True)
    secret = tmp_path / "secret.txt"
    secret.write_text("open sesame\n")
    assert run("create", "demo", "--set", folder, "--password-file", secret).exit_code == 0
    assert run("create", "no", "--set", folder, "--password-file", tmp_path).exit_code == 2
