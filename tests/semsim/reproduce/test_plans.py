"""`reproduce … --plan`: what it takes, where that goes, and what was not run of the paper."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from semsim.cli.reproduce import app
from semsim.reporting.not_run import NOT_RUN, SECTIONS
from semsim.reproduce import REPRODUCTIONS
from semsim.reproduce.pbpfl_cost import leak_shares
from semsim.reproduce.pbpfl_leak import LeakPlan, leak_pieces
from semsim.reproduce.plans import Share, shares_text

PAPERS = Path(__file__).parents[3] / "docs" / "papers.md"
# By reproduction: what asks for its smallest plan.
ASKED = {
    "copa": ("--count", "2", "--seeds", "3", "--variants", "4", "--activations", "tanh"),
    "deployed": ("--preset", "smoke"),
    "everything": ("--preset", "smoke"),
    "ensembler": ("--preset", "smoke"),
    "pbpfl": ("--preset", "smoke"),
}


def planned(name, folder, *words):
    place = ("--data-dir", folder) if name == "ensembler" else ("--out", folder)
    return CliRunner().invoke(app, [name, "--plan", *map(str, (*ASKED[name], *place, *words))])


def test_every_reproduction_says_what_was_not_run():
    assert set(NOT_RUN) == set(REPRODUCTIONS) == set(SECTIONS)
    assert all(NOT_RUN.values())


@pytest.mark.parametrize("name", SECTIONS)
def test_the_page_ends_each_paper_with_the_same_list(name):
    head = re.escape(SECTIONS[name])
    (section,) = re.findall(rf"^## {head}$.*?(?=^## )", PAPERS.read_text(), re.M | re.S)
    _, _, listed = section.partition("\nNot run so far:\n")
    told = [" ".join(one.split()) for one in re.split(r"^- ", listed.strip(), flags=re.M) if one]
    assert told == [f"{one.what}: {one.why}." for one in NOT_RUN[name]]


@pytest.mark.parametrize("name", ASKED)
def test_a_plan_measures_and_computes_nothing_else(name, tmp_path):
    folder = tmp_path / "out"
    done = planned(name, folder)
    assert done.exit_code == 0, done.output
    assert re.search(r"About [\d,.]+ core-(hours|days), [\d.]+ MB of disk at most", done.output)
    for one in NOT_RUN[name]:
        assert f"- {one.what}: {one.why}." in done.output
    assert "0.0 MB" not in done.output
    assert name == "everything" or not folder.exists()
    assert all("probes" in one.parts for one in folder.rglob("*") if one.is_file())
    rows = json.loads(planned(name, folder, "--json").stdout)
    assert all(row["count"] > 0 and row["seconds"] > 0 for row in rows)


def test_a_plan_counts_what_the_command_would_do(tmp_path):
    copa, pbpfl = (
        json.loads(planned(name, tmp_path / name, "--json").stdout) for name in ("copa", "pbpfl")
    )
    assert [row["count"] for row in copa] == [2 * 3]  # pictures and networks
    counts = {(row["part"], row["what"]): row["count"] for row in pbpfl}
    for scheme in ("FedAvg-MSE", "PBPFL"):  # 1, 5 and 10 clients, two seeds
        assert counts["Table 2", f"train mlp-3, {scheme}"] == 3 * 2
    attacks = {count for (part, _), count in counts.items() if part == "What leaks"}
    assert attacks == {2 * 2}  # untrained and trained, two seeds


def test_parties_whose_attack_is_the_same_work_are_measured_once(tmp_path):
    plan = LeakPlan(
        data="symbols:train_per_class=1,test_per_class=1,size=16",
        networks=(("mlp-3", ("links-naive", "links-stripped", "uplink", "server-pbpfl")),),
        rounds=(1,),
        seeds=1,
        images=2,
        attack="invgrad:steps=2",
    )
    shares = leak_shares(plan, leak_pieces(plan, tmp_path))
    taken = {one.what.split(", ")[1]: one.seconds for one in shares}
    assert taken["links-naive"] == taken["links-stripped"] == taken["uplink"]
    assert taken["server-pbpfl"] != taken["uplink"]  # all clients have one model there


def test_little_is_told_in_hours_and_much_in_days():
    def told(seconds):
        share = Share(part="a", what="train", count=2, seconds=seconds)
        return shares_text([share], 5_000_000, "Not in it: b.")

    assert "About 2.0 core-hours, 5.0 MB of disk" in told(7_200)
    assert "About 2.0 core-days, " in told(2 * 86_400)
    assert told(7_200).endswith("Not in it: b.")
    assert "GPU-hours are not told" in told(7_200)


def test_hours_of_a_gpu_stand_beside_those_of_cores():
    share = Share(part="a", what="train", count=2, seconds=7_200)
    fast = Share(part="a", what="train", count=2, seconds=360)
    told = shares_text([share], 5_000_000, on_gpu=[fast], gpu="NVIDIA H100")
    assert "About 2.0 core-hours" in told
    assert "About 0.1 GPU-hours on one NVIDIA H100" in told
    assert "not told" not in told
