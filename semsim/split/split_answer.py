"""The answer of an experiment in split inference: what is recognised, then the statistic."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from semsim.sets.recognition import STATISTIC
from semsim.split.summary import count_of, count_text, unlearned_words
from semsim.words import listed

_RUNS = 3  # of an attack on a system, for a verdict
_WITHOUT_ORIGINALS = ("", "attacker's choice")  # choices an attacker can make


def answer_words(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the answer of an experiment, after a warning where its networks learned too little.

    result: see `semsim.split.run.run_split`.
    """
    summary, known = result["summary"], result["baselines"]
    said = (unlearned_words(summary, known), _recognised(summary, known), verdict_words(summary))
    return tuple(filter(None, said))


def _recognised(summary: Sequence[Mapping[str, Any]], known: Mapping[str, float]) -> str:
    """Return what a classifier of the same pictures recognises under each defence, and controls."""
    best = _strongest(summary)
    plain = {network: row for (network, name), row in best.items() if name == "none"}
    parts = [
        f"{row['recognised']:.0%} of pictures {_where(key, plain)}"
        for key, row in best.items()
        if not pd.isna(row["recognised"])
    ]
    if not parts:
        return ""
    return (
        f"A reference classifier recognises {listed(parts)} (controls: "
        f"{known['recogniser_grey']:.0%} of grey pictures, {known['recogniser']:.0%} of originals)."
    )


def _where(key: tuple[str, str], plain: Mapping[str, Any]) -> str:
    return "without a defence" if key[1] == "none" else f"under {_called(key, plain)}"


def verdict_words(summary: Sequence[Mapping[str, Any]]) -> str:
    """The statistic in sentences: what is clearer than a guess without a defence, and with one.

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
