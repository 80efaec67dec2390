"""Results of an experiment in split inference, as tables, in words and as its answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.cli.terminal import text_table
from semsim.base.stats.intervals import half_words, of_means, share_words
from semsim.base.words import listed, target_words, with_spread
from semsim.lab import sets
from semsim.lab.markup import pieces
from semsim.sets.no_attack_baseline import Count
from semsim.sets.recognition import CLEARER, STATISTIC, lead_words
from semsim.systems.split.plan import ARMS

# One row a (network, defence, defence seed, attack, body, attack seed); bodies are places.
COLUMNS = (
    *("network", "defence", "defence_seed", "accuracy", "change", "valid"),
    *("attack", "body", "attack_seed", "ssim", "psnr", "recognised", "shadow_accuracy"),
    *("worse_than_grey", "clearer", "by_shapes", "judged"),
)
_COUNTED = ("clearer", "by_shapes", "judged")  # as in a `Count`
_KEYS = ["network", "defence", "defence_seed", "attack", "attack_seed"]
_SLIGHT = 0.2
_RUNS = 3  # of an attack on a system, for a verdict
_WITHOUT_ORIGINALS = ("", "attacker's choice")  # choices an attacker can make
_PICKS = {
    "best SSIM": "ssim",
    "best PSNR": "psnr",
    "attacker's choice": "shadow_accuracy",
}
_CHOICE_WORDS = {
    "best SSIM": "best body by SSIM (needs the originals)",
    "best PSNR": "best body by PSNR (needs the originals)",
    "attacker's choice": "the body an attacker would choose",
    "mean of N": "mean of the bodies",
}
_HTML = pieces("page.html", "semsim.systems.split")


def choices(rows: pd.DataFrame) -> pd.DataFrame:
    """One row an attack: of attacks on each body apart, one row a way to choose among them.

    Args:
        rows: Columns `COLUMNS`. The new column `choice` is "" for attacks that leave no choice,
            else "best SSIM" or "best PSNR", for which one must see the originals, "attacker's
            choice", the body whose shadow classifies public images best, or "mean of N".
    """
    found = []
    for _, group in rows.dropna(subset=["psnr"]).groupby(_KEYS, sort=False):
        if len(group) == 1:
            found.append(group.assign(choice=""))
            continue
        for choice, column in _PICKS.items():
            if group[column].notna().any():
                found.append(group.loc[[group[column].idxmax()]].assign(choice=choice))
        numbers = ["ssim", "psnr", "recognised", "shadow_accuracy", "worse_than_grey"]
        numbers += [*_COUNTED, *more_metrics(group)]
        mean = group.head(1).assign(choice="mean of N", body=-1)
        found.append(mean.assign(**{name: group[name].mean() for name in numbers}))
    columns = [*rows.columns, "choice"]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=columns)


def more_metrics(table: pd.DataFrame) -> list[str]:
    """The metrics of a plan that a table of its rows has beside SSIM and PSNR."""
    return [name for name in table.columns if name not in (*COLUMNS, "choice")]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over seeds, one row a (network, defence, attack, choice).

    Systems that are invalid and were not attacked have one row without scores. `n` counts runs,
    `clearer`, `by_shapes` and `judged` the pictures of all runs, see
    `semsim.sets.no_attack_baseline.Count`. sd has n - 1 and is NaN for one run.
    `shadow_low` and `shadow_high` are the ends of the shadows' accuracy on public inputs: an attack
    whose shadow has learned little says little.
    """
    lines = []
    for (network, defence), part in rows.groupby(["network", "defence"], sort=False):
        systems = part.drop_duplicates("defence_seed")
        facts = {
            "network": network,
            "defence": defence,
            "accuracy": systems["accuracy"].mean(),
            "change": systems["change"].mean(),
            "valid": bool(systems["valid"].all()),
        }
        chosen = choices(part)
        if chosen.empty:
            lines.append({**facts, "attack": "", "choice": "", "n": 0})
            continue
        for (attack, choice), group in chosen.groupby(["attack", "choice"], sort=False):
            scores = {"attack": attack, "choice": choice}
            for name in ("ssim", "psnr", *more_metrics(rows)):
                scores[f"{name}_mean"] = group[name].mean()
                scores[f"{name}_sd"] = group[name].std(ddof=1)
            scores["recognised"] = group["recognised"].mean()
            scores |= _counted(group) | _learned(group)
            lines.append({**facts, **scores})
    return pd.DataFrame(lines)


def verdict(rows: pd.DataFrame, defence: str, against: str, attack: str) -> str:
    """In words: does an attack show less of systems with `defence` than of those with `against`?

    Differences are of means over trained systems, each the mean over the attacks on it; an order is
    called shown where of both SSIM and PSNR the interval, `of_means`, leaves out 0. The count of
    pictures that show more than a guess is told beside it, as it sees what has the wrong colours.
    """
    chosen = choices(rows[rows["attack"] == attack])
    sides = [chosen[(chosen["defence"] == name) & chosen["valid"]] for name in (defence, against)]
    if any(side.empty for side in sides):
        missing = defence if sides[0].empty else against
        return f"{attack}: no valid run of {missing}; nothing can be said."
    parts, signs = [], []
    for name, unit in (("ssim", ""), ("psnr", " dB")):
        ours, theirs = (of_systems(side, name) for side in sides)
        gap, (half, why) = float(ours.mean() - theirs.mean()), of_means(ours, theirs, noun="system")
        signs.append(int(np.sign(gap)) if abs(gap) > half else 0)
        parts.append(
            f"{name.upper()} {ours.mean():.3f}{unit} against {theirs.mean():.3f}{unit} "
            f"(difference {gap:+.3f}{half_words(half, why)})"
        )
    shown = {(-1, -1): "shows less than", (1, 1): "shows more than"}
    words = shown.get((signs[0], signs[1]), "is not shown to differ from")
    counts = [count_text(_counted(side)) for side in sides]
    parts.append(f"{CLEARER[0].lower()}{CLEARER[1:]} {counts[0]} against {counts[1]}")
    learned = [shadow_text(_learned(side)) for side in sides]
    parts.append(f"the shadows name {learned[0]} of public inputs right, against {learned[1]}")
    return f"{attack}: {defence} {words} {against}: {'; '.join(parts)}."


def of_systems(runs: pd.DataFrame, name: str) -> np.ndarray:
    """The mean of a column over the attacks on each trained system, (systems,).

    Attacks on one system share its weights and its noise, so that only systems are independent.
    """
    by = [key for key in ("network", "defence_seed") if key in runs]
    return runs.groupby(by, sort=False)[name].mean().to_numpy(float)


def unlearned_words(rows: Sequence[Mapping[Any, Any]], known: Mapping[str, float]) -> str:
    """A warning where an undefended network names hardly more than a guesser, "" where none does.

    Args:
        rows: Of a summary.
        known: An experiment's baselines, with the `chance` of a right guess; where there is one
            class, no guess is wrong and nothing is said. Hardly: by (right − chance) / (1 −
            chance), Cohen's kappa against a guesser where classes are of equal size, below 0.2,
            "slight" by Landis and Koch (1977).
    """
    chance = known["chance"]
    if chance == 1:
        return ""
    plain = {row["network"]: row["accuracy"] for row in rows if row["defence"] == "none"}
    poor = {
        name: right for name, right in plain.items() if (right - chance) / (1 - chance) < _SLIGHT
    }
    told = [
        f"{'the undefended network' if len(plain) < 2 else name} has "
        f"{target_words(right, chance, at_chance=None)}"
        for name, right in poor.items()
    ]
    if not told:
        return ""
    return (
        f"Not trained enough to be judged: {listed(told)}. Reconstructions from such features "
        "show nothing about a trained network."
    )


def guess_words(known: Mapping[str, float]) -> str:
    """Return what comes without any feature;

    Args:
        known: An experiment's baselines.
    """
    return (
        f"Without any feature: a grey image has SSIM {known['grey_ssim']:.3f} and PSNR "
        f"{known['grey_psnr']:.2f} dB, the mean public image {known['mean_ssim']:.3f} and "
        f"{known['mean_psnr']:.2f} dB."
    )


def guess_lines(outcome: Mapping[str, Any]) -> list[str]:
    """Return `guess_words`, and `unlearned_words` if any: read before a verdict.

    Args:
        outcome: See `semsim.systems.split.run.run_split`.
    """
    known = outcome["baselines"]
    warning = unlearned_words(outcome["summary"], known)
    return [guess_words(known), *filter(None, [warning])]


def summary_text(table: pd.DataFrame) -> str:
    """A summary as text, in columns."""
    more = scored(table)
    header = ["network", "defence", "accuracy", "change", "attack", "choice", "n"]
    rows = []
    for row in table.to_dict("records"):
        valid = "" if row["valid"] else " invalid"
        scores = [spread_text(row, "ssim", 3), spread_text(row, "psnr", 2)]
        scores += [spread_text(row, name, 3) for name in more]
        cells = [row["network"], row["defence"], f"{row['accuracy']:.3f}{valid}"]
        cells += [f"{100 * row['change']:+.2f}", row["attack"] or "not attacked"]
        counts = [str(row["n"]), shadow_text(row), count_text(row)]
        rows.append([*cells, row["choice"], *counts, *scores])
    return text_table([*header, "shadow right", CLEARER, "SSIM", "PSNR, dB", *more], rows)


def scored(table: pd.DataFrame) -> list[str]:
    """The metrics that a summary has beside SSIM and PSNR."""
    ends = [name.removesuffix("_mean") for name in table.columns if name.endswith("_mean")]
    return [name for name in ends if name not in ("ssim", "psnr")]


def spread_text(row: Mapping[Any, Any], name: str, digits: int) -> str:
    """Mean ± standard deviation in a summary's row, "–" where there is none."""
    return with_spread(row.get(f"{name}_mean"), row.get(f"{name}_sd"), f".{digits}f")


def _counted(runs: pd.DataFrame) -> dict[str, float]:
    """Return the counts over several runs, and how many these are."""
    return {"n": len(runs), **{name: runs[name].sum() for name in _COUNTED}}


def _learned(runs: pd.DataFrame) -> dict[str, float]:
    ends = runs["shadow_accuracy"].agg(["min", "max"])
    return {"shadow_low": ends["min"], "shadow_high": ends["max"]}


def shadow_text(row: Mapping[Any, Any]) -> str:
    """Return the share of public inputs that a summary row's shadows name right, as "33–82%"."""
    low, high = (row.get(f"shadow_{end}", np.nan) for end in ("low", "high"))
    if pd.isna(low):
        return "–"
    ends = dict.fromkeys(f"{100 * end:.0f}" for end in (low, high))
    return f"{'–'.join(ends)}%"


def count_of(row: Mapping[Any, Any]) -> Count:
    """Return how many pictures of all runs show more than a guess."""
    clearer, by_shapes, over = (round(row[name]) for name in _COUNTED)
    return Count(clearer, by_shapes, over, _images(row))


def count_text(row: Mapping[Any, Any]) -> str:
    """Return the pictures above the baseline in a summary's row, "–" where none was attacked."""
    return "–" if pd.isna(row.get("clearer", np.nan)) else count_of(row).short


def cost_text(cost: Mapping[str, Any]) -> str:
    """Return the cost of a defence as one line."""
    return (
        f"{cost['network']} {cost['defence']}: client {cost['client'] / 1e6:.2f} MFLOP and "
        f"{cost['client_ms']:.1f} ms, server {cost['server'] / 1e6:.2f} MFLOP and "
        f"{cost['server_ms']:.1f} ms, {cost['sent']:,} bytes sent, {cost['returned']:,} returned"
    )


def answer_words(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the answer of an experiment, after a warning where its networks learned too little.

    Args:
        result: See `semsim.systems.split.run.run_split`.
    """
    summary, known = result["summary"], result["baselines"]
    said = (unlearned_words(summary, known), _recognised(summary, known), verdict_words(summary))
    return tuple(filter(None, said))


def _recognised(summary: Sequence[Mapping[str, Any]], known: Mapping[str, float]) -> str:
    """Return what a classifier of the same pictures recognises under each defence, and controls."""
    best = _strongest(summary)
    plain = {network: row for (network, name), row in best.items() if name == "none"}
    parts = [
        f"{share_words(row['recognised'], _images(row))} of pictures {_where(key, plain)}"
        for key, row in best.items()
        if not pd.isna(row["recognised"])
    ]
    if not parts:
        return ""
    return lead_words(
        f"{listed(parts)} (controls: {known['recogniser_grey']:.0%} of grey pictures, "
        f"{known['recogniser']:.0%} of originals)"
    )


def _images(row: Mapping[str, Any]) -> int:
    """Return of how many originals a run's pictures are; all runs have the same.

    Args:
        row: Of several runs, or without `n` of one.
    """
    return round(row["judged"] / row.get("n", 1))


def _where(key: tuple[str, str], plain: Mapping[str, Any]) -> str:
    return "without a defence" if key[1] == "none" else f"under {_called(key, plain)}"


def verdict_words(summary: Sequence[Mapping[str, Any]]) -> str:
    """The statistic in sentences: what is above the baseline without a defence, and with one.

    A defence counts by the strongest attack that a server can make, over all runs. Where no attack
    gets most pictures back from the undefended system, nothing is said of defences.
    """
    best = _strongest(summary)
    plain = {network: row for (network, name), row in best.items() if name == "none"}
    if not plain:
        return "The undefended system was not attacked: nothing can be said of a defence."
    if failed := [row for row in plain.values() if not count_of(row).comes_back]:
        return (
            f"{STATISTIC}the attacks failed on the undefended system; what came back is "
            f"{count_of(failed[0]).words} ({_figures(failed[0])}). Nothing can be said of a "
            "defence."
        )
    first = next(iter(plain.values()))
    parts = [f"{STATISTIC}without a defence it is {count_of(first).words} ({_figures(first)})."]
    others = {key: row for key, row in best.items() if key[1] != "none"}
    told = {
        shows: [
            f"{_called(key, plain)} ({count_text(row)}; {_figures(row)})"
            for key, row in others.items()
            if count_of(row).comes_back == shows
        ]
        for shows in (False, True)
    }
    if told[False]:
        parts.append(f"No attack is clearer on most of them under {listed(told[False])}.")
    if told[True]:
        parts.append(f"Most are still clearer under {listed(told[True])}.")
    unfit = dict.fromkeys(str(row["defence"]) for row in summary if not row["valid"])
    if unfit:
        parts.append(f"{listed(list(unfit))} cannot be judged: too much accuracy is lost.")
    if min(row["n"] for row in best.values()) < _RUNS:
        parts.append(f"A verdict needs {_RUNS} runs of each.")
    return " ".join(parts)


def _strongest(summary: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Of each valid system the row of the attack that gets most, of those a server can make."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in summary:
        able = row["choice"] in _WITHOUT_ORIGINALS and not row["attack"].startswith("oracle")
        if not row["valid"] or not row["attack"] or not able or pd.isna(row["psnr_mean"]):
            continue
        key = (str(row["network"]), str(row["defence"]))
        if key not in found or _order(row) > _order(found[key]):
            found[key] = row
    return found


def _order(row: Mapping[str, Any]) -> tuple[float, float]:
    count = count_of(row)
    return count.clearer / max(1, count.over), float(row["psnr_mean"])


def _figures(row: Mapping[str, Any]) -> str:
    ssim = "" if pd.isna(row["ssim_mean"]) else f"SSIM {row['ssim_mean']:.2f}, "
    return f"{ssim}PSNR {row['psnr_mean']:.1f} dB"


def _called(key: tuple[str, str], plain: Mapping[str, Any]) -> str:
    """A defence, with its network where there are several."""
    network, defence = key
    return defence if len(plain) < 2 else f"{defence} on {network}"


def result_html(result: Mapping[str, Any]) -> str:
    """A finished experiment: a study of it, the table, what comes without features, the cost."""
    inside = _HTML.result(
        scores_html(result["summary"]),
        _HTML.baselines(result["baselines"]),
        costs_html(result["costs"]),
    )
    return sets.made_html(inside, result["sets"])


def scores_html(summary: Sequence[Mapping[str, Any]]) -> str:
    """Mean ± standard deviation over seeds, one row a way to attack."""
    more = scored(pd.DataFrame(list(summary)))
    head = ["Network", "Defence", "Accuracy", "Attack", "Runs"]
    head += [CLEARER, "SSIM", "PSNR, dB", "Recognised", "Shadow right on public"]
    rows = [
        [
            row["network"],
            row["defence"],
            _HTML.accuracy(
                f"{row['accuracy']:.1%} ({100 * row['change']:+.1f} points)", row["valid"]
            ),
            attack_words(str(row["attack"]), str(row["choice"])),
            row["n"],
            count_text(row),
            spread_text(dict(row), "ssim", 3),
            spread_text(dict(row), "psnr", 2),
            "–" if pd.isna(share := row.get("recognised")) else f"{share:.0%}",
            shadow_text(row),
            *(spread_text(dict(row), name, 3) for name in more),
        ]
        for row in summary
    ]
    return _HTML.scores([*head, *more], rows, all(row["valid"] for row in summary))


def attack_words(attack: str, choice: str) -> str:
    """An attack the way people say it."""
    if not attack:
        return "not attacked"
    arm, _, body = attack.partition("-body")
    if attack not in ARMS and arm in ARMS:
        return f"{ARMS[arm].title} {body}"
    title = ARMS[attack].title if attack in ARMS else attack
    return f"{title}: {_CHOICE_WORDS.get(choice, choice)}" if choice else title


def costs_html(costs: Sequence[Mapping[str, Any]]) -> str:
    """Operations, time and bytes, one row a defence."""
    rows = [
        [
            f"{cost['network']} {cost['defence']}",
            f"{cost['client'] / 1e6:.2f} MFLOP, {cost['client_ms']:.1f} ms",
            f"{cost['server'] / 1e6:.2f} MFLOP, {cost['server_ms']:.1f} ms",
            f"{cost['sent']:,} bytes",
            f"{cost['returned']:,} bytes",
        ]
        for cost in costs
    ]
    return _HTML.costs(rows)
