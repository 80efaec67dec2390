"""Layer-wise inversion through a campaign into reconstruction sets."""

from pathlib import Path

from distributed import Client
from made_campaign import one_thread_cluster, toy_campaign

from semsim.base.sets.reader import read_set
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.runner import HowToRun, run_plan

ATTACKS = ("rgap:steps=200", "copa:steps=2,inner=50", "copa-prior:steps=1,inner=10")


def test_all_three_end_in_sets_that_say_what_each_picture_is_worth(tmp_path):
    campaign = toy_campaign(
        architectures=("cnn3:variant=2,activation=leaky-relu",),
        strategies=("none",),
        attacks=ATTACKS,
        images=1,
    )
    with one_thread_cluster() as cluster, Client(cluster, set_as_default=False) as client:
        result = run_plan(plan_of(campaign), tmp_path, client, HowToRun(device="cpu"))
    sets = [read_set(Path(folder)) for folder in result["sets"]]
    assert [one.run["attack"]["name"] for one in sets] == ["rgap", "copa", "copa-prior"]
    rows = [one.manifest.iloc[0] for one in sets]
    assert all(0 < row["objective"] < 1 and 0 < row["grey_residual"] < 1 for row in rows)
    assert [bool(row["blown_up"]) for row in rows] == [True, False, False]
    assert [bool(row["worse_than_grey"]) for row in rows] == [True, False, False]
    assert [row["solver"] for row in rows] == ["recursion", "recursion", "prior"]
    assert all(Path(one.pairs["reconstruction"][0]).is_file() for one in sets)
