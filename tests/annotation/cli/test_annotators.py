"""The command group `annotators`, in process."""

import json

import pytest

from annotation.web.root_path import ROOT_PATH


@pytest.fixture
def run(run, folder):
    run("create", "demo", "--set", folder, "--simulated", "--votes-per-item", "3")
    run("simulate", "demo", "--annotators", "3")
    return run


def row_of(run, name):
    """The status, the kind and the two counts of an annotator in the table."""
    head, *lines = run("annotators", "demo").output.splitlines()
    assert head.split("  ")[0] == "annotator"
    (row,) = [line.removeprefix(name).split() for line in lines if line.startswith(f"{name} ")]
    return row[:4]


def test_a_dry_run_only_tells(run):
    told = run("annotators", "exclude", "demo", "Simulated 1", "--dry-run").output
    assert "4 counted votes of Simulated 1" in told
    assert "4 items would no longer have all votes" in told
    assert "Dry run: nothing was changed." in told
    assert row_of(run, "Simulated 1") == ["active", "simulated", "4", "0"]


def test_what_excluding_would_change_is_printed_as_json_too(run):
    asked = ("annotators", "exclude", "demo", "Simulated 1", "--json")
    tried = run(*asked, "--dry-run")
    assert tried.stderr == "Dry run: nothing was changed.\n"
    effect = json.loads(tried.stdout)["effect"]
    assert (effect["annotator"], effect["n_votes"], effect["n_short"]) == ("Simulated 1", 4, 4)
    assert {"model", "before", "after"} <= set(effect["models"][0])
    done = run(*asked)
    assert (json.loads(done.stdout), done.stderr) == (
        {"effect": effect},
        "Simulated 1 is excluded\n",
    )


def test_out_and_in_again(run):
    assert "Simulated 1 is excluded" in run("annotators", "exclude", "demo", "simulated 1").output
    assert row_of(run, "Simulated 1") == ["excluded", "simulated", "0", "4"]
    assert "Simulated 1 is active" in run("annotators", "include", "demo", "Simulated 1").output
    assert "Simulated 1 is paused" in run("annotators", "pause", "demo", "Simulated 1").output
    assert "Simulated 1 is active" in run("annotators", "resume", "demo", "Simulated 1").output
    assert run("annotators", "demo").output == run("annotators", "list", "demo").output


@pytest.mark.parametrize(("votes", "left"), [("keep", ["4", "0"]), ("remove", ["0", "4"])])
def test_erasing(run, votes, left):
    done = run("annotators", "erase", "demo", "Simulated 2", "--their-votes", votes, "--yes").output
    pseudonym = done.split()[0]
    assert done == f"{pseudonym} is erased\n"
    assert row_of(run, pseudonym) == ["erased", "simulated", *left]
    assert "Simulated 2" not in run("annotators", "demo").output


def test_erasing_asks_first(run):
    asked = run("annotators", "erase", "demo", "Simulated 2", "--their-votes", "remove")
    assert (asked.exit_code, "Erase Simulated 2 for good" in asked.output) == (1, True)
    assert "Simulated 2" in run("annotators", "demo").output


def test_what_becomes_of_the_votes_must_be_said(run):
    assert run("annotators", "erase", "demo", "Simulated 2").exit_code == 2
    assert "Simulated 2" in run("annotators", "demo").output


def test_mistakes_are_explained(run):
    nobody = run("annotators", "pause", "demo", "Nobody")
    assert (nobody.exit_code, "called 'Nobody'" in nobody.output) == (2, True)
    never = run("annotators", "include", "demo", "Simulated 1")
    assert never.exit_code == 0  # nothing to do
    run("annotators", "exclude", "demo", "Simulated 1")
    wrong = run("annotators", "resume", "demo", "Simulated 1")
    assert (wrong.exit_code, "Simulated 1 is excluded" in wrong.output) == (2, True)


def test_a_new_personal_link_is_told(run):
    told = run("annotators", "link", "demo", "Simulated 1").output
    assert told.startswith("/me/")
    assert len(told.strip()) == len("/me/") + 32


def test_links_have_the_path_that_the_environment_names(run, monkeypatch):
    monkeypatch.setenv(ROOT_PATH, "/semsim")
    assert run("annotators", "link", "demo", "Simulated 1").output.startswith("/semsim/me/")
    (study,) = json.loads(run("list", "--json").stdout)["studies"]
    assert study["link"].startswith("/semsim/join/")
