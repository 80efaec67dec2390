import pandas as pd
import pytest

from semsim.papers.ensembler import table_lines, table_rows, verdicts
from semsim.systems.split.summary import (
    COLUMNS,
    choices,
    summary,
    summary_text,
    unlearned_words,
    verdict,
)

ENSEMBLER = "ensembler:bodies=2,selected=1"


def row(defence, attack="adaptive", seed=0, **values):
    base = dict.fromkeys(COLUMNS, 0.0)
    base |= {"network": "small", "defence": defence, "attack": attack, "body": -1}
    base |= {"defence_seed": 0, "attack_seed": seed, "accuracy": 0.9, "valid": True}
    return {**base, **values}


def bodies(seed, *scores):
    """One row a body: SSIM, PSNR, the shadow's accuracy."""
    return [
        row(ENSEMBLER, "one-body", seed, body=n, ssim=s, psnr=p, shadow_accuracy=a)
        for n, (s, p, a) in enumerate(scores)
    ]


def test_the_attacker_s_choice_is_not_the_best_by_the_originals():
    table = choices(pd.DataFrame(bodies(0, (0.1, 9.0, 0.8), (0.4, 8.0, 0.6), (0.2, 11.0, 0.7))))
    found = table.set_index("choice")
    assert found.loc["best SSIM", "body"] == 1
    assert found.loc["best PSNR", "body"] == 2
    assert found.loc["attacker's choice", "body"] == 0
    assert found.loc["mean of N", "psnr"] == pytest.approx(28 / 3)


def test_spreads_are_over_runs_not_over_bodies():
    rows = bodies(0, (0.1, 9.0, 1.0), (0.3, 5.0, 0.0)) + bodies(1, (0.2, 11.0, 1.0), (0.1, 4, 0.0))
    table = summary(pd.DataFrame(rows)).set_index("choice")
    best = table.loc["best PSNR"]
    assert (best["psnr_mean"], best["n"]) == (10.0, 2)
    assert best["psnr_sd"] == pytest.approx(2**0.5)


def test_a_system_that_was_not_attacked_is_in_the_table_as_invalid():
    nothing = dict.fromkeys(["attack", "ssim", "psnr", "attack_seed", "recognised"])
    bad = row("random-head", accuracy=0.2, change=-0.7, valid=False) | nothing
    table = summary(pd.DataFrame([row("none", ssim=0.5, psnr=20.0), bad]))
    text = summary_text(table)
    assert "0.200 invalid" in text
    assert "not attacked" in text
    assert "0.500  20.00" in text


def runs(defence, values, attack="adaptive", of="defence_seed"):
    """A run a value, each on a system of its own, or with of="attack_seed" all on one."""
    counts = {"by_shapes": 1, "judged": 10}
    return [
        row(defence, attack, ssim=v, psnr=40 * v, clearer=3 + s, **counts, **{of: s})
        for s, v in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ((0.1, 0.11, 0.12) * 2, (0.5, 0.51, 0.52) * 2, "shows less than"),
        ((0.5, 0.51, 0.52) * 2, (0.1, 0.11, 0.12) * 2, "shows more than"),
        ((0.1, 0.5, 0.3) * 2, (0.2, 0.6, 0.4) * 2, "is not shown to differ from"),
        ((0.1, 0.11, 0.12, 0.1, 0.11), (0.9, 0.91, 0.9, 0.91, 0.9), "is not shown to differ from"),
    ],
)
def test_an_order_is_called_shown_only_beyond_the_spread(ours, theirs, words):
    table = pd.DataFrame(runs(ENSEMBLER, ours) + runs("single", theirs))
    told = verdict(table, ENSEMBLER, "single", "adaptive")
    assert words in told
    n = len(ours)
    count = f"{sum(range(3, 3 + n))} of {10 * n} ({n} by shapes)"
    assert f"above the no-attack baseline {count} against {count};" in told


def test_how_well_the_shadows_learned_stands_beside_what_they_gave():
    table = pd.DataFrame(runs(ENSEMBLER, (0.1, 0.2)) + runs("single", (0.5,)))
    table["shadow_accuracy"] = [0.33, 0.824, 0.9]
    text = summary_text(summary(table))
    assert "33–82%" in text
    assert " 90%" in text
    told = verdict(table, ENSEMBLER, "single", "adaptive")
    assert told.endswith("the shadows name 33–82% of public inputs right, against 90%.")


def test_attacks_on_one_system_are_no_spread_over_systems():
    sides = (ENSEMBLER, (0.1, 0.11, 0.12)), ("single", (0.5, 0.51, 0.52))
    table = pd.DataFrame([one for side in sides for one in runs(*side, of="attack_seed")])
    told = verdict(table, ENSEMBLER, "single", "adaptive")
    assert "is not shown to differ from" in told
    assert "(difference -0.400, no interval: 1 system, fewer than 6)" in told
    more = [
        table.assign(defence_seed=n, ssim=table["ssim"] + 0.02 * n, psnr=table["psnr"] + 0.5 * n)
        for n in range(6)
    ]
    six = verdict(pd.concat(more), ENSEMBLER, "single", "adaptive")
    assert "shows less than" in six
    # Six systems a side, 0.02 apart: a standard error of 0.02 √(3.5 / 3), times t of 10, 2.228.
    assert "(difference -0.400 ± 0.048)" in six


def test_invalid_runs_are_no_evidence():
    rows = runs("single", (0.5, 0.6)) + [r | {"valid": False} for r in runs(ENSEMBLER, (0.1, 0.1))]
    assert "nothing can be said" in verdict(pd.DataFrame(rows), ENSEMBLER, "single", "adaptive")


def test_the_paper_s_cells_stand_beside_ours():
    rows = runs("none", (0.5, 0.6)) + runs(ENSEMBLER, (0.2, 0.3))
    rows += runs("none", (0.9, 0.9), "adaptive-aligned")
    rows += runs(ENSEMBLER, (0.8, 0.7), "adaptive-aligned")
    lines = table_lines(pd.DataFrame(rows), 1)
    none = next(line for line in lines if line.startswith("| NONE"))
    assert "+0.00 | 0.436 | 12.27" in none
    assert "| 2 | 0.550 ± 0.071 | 22.00 ± 2.83 | 7 of 20 (2 by shapes) | 0.900" in none
    assert "| not run |" in next(line for line in lines if line.startswith("| Shredder"))
    told = {one["row"]: one for one in table_rows(pd.DataFrame(rows), 1)}
    assert told["NONE"]["paper"]["ssim"] == 0.4363
    assert told["NONE"]["here"]["ssim_mean"] == pytest.approx(0.55)
    assert told["NONE"]["aligned"]["ssim_mean"] == pytest.approx(0.9)
    assert (told["Shredder"]["here"], told["Shredder"]["aligned"]) == (None, None)
    assert len(told) == len(lines) - 2
    assert any("+0.500 SSIM" in line for line in verdicts(pd.DataFrame(rows)))


def test_a_metric_of_the_plan_is_summed_up_like_the_others():
    rows = [
        {**one, "semsim:mine": value}
        for one, value in zip(bodies(0, (0, 1, 1), (1, 0, 0)), (2.0, 4.0), strict=True)
    ]
    table = summary(pd.DataFrame(rows)).set_index("choice")
    assert table.loc["mean of N", "semsim:mine_mean"] == 3.0
    assert table.loc["best PSNR", "semsim:mine_mean"] == 2.0
    assert "PSNR, dB  semsim:mine" in summary_text(table.reset_index())


def test_of_one_class_nothing_is_said_of_guessing():
    rows = summary(pd.DataFrame(runs("none", (0.5,)))).to_dict("records")
    assert unlearned_words(rows, {"chance": 1.0}) == ""
    assert "Not trained enough" in unlearned_words(rows, {"chance": 0.9})
