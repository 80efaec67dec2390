"""What the page Split inference draws: plain values in, HTML out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from semsim.split.plan import ARMS
from semsim.split.summary import count_text, scored, shadow_text, spread_text
from semsim.ui import lab_cards
from semsim.ui.markup import pieces
from semsim.words import counted

if TYPE_CHECKING:
    from semsim.split.outlook import SplitOutlook

_HTML = pieces("split.html")
_CHOICES = {
    "best SSIM": "best body by SSIM (needs the originals)",
    "best PSNR": "best body by PSNR (needs the originals)",
    "attacker's choice": "the body an attacker would choose",
    "mean of N": "mean of the bodies",
}


def outlook_html(found: SplitOutlook, last: str) -> str:
    """Return what a plan takes before it is started, as HTML; last: see `jobpanel.last_words`."""
    pictures = counted(found.pictures, "picture")
    return lab_cards.outlook_html(
        counted(found.systems, "system"),
        " to train",
        f"{counted(found.attacks, 'attack')}, each judged on {pictures}",
        found.disk,
        last,
    )


def step_name(model: str, attack: str) -> str:
    """A system and an attack on it, in words."""
    return f"{model} · {attack_words(attack, '')}"


def result_html(result: Mapping[str, Any]) -> str:
    """A finished experiment: a study of it, the table, what comes without features, the cost."""
    inside = _HTML.result(
        scores_html(result["summary"]),
        _HTML.baselines(result["baselines"]),
        costs_html(result["costs"]),
    )
    return lab_cards.made_html(inside, result["sets"])


def scores_html(summary: Sequence[Mapping[str, Any]]) -> str:
    """Mean ± standard deviation over seeds, one row a way to attack."""
    more = scored(pd.DataFrame(list(summary)))
    head = ["Network", "Defence", "Accuracy", "Attack", "Runs"]
    head += ["Clearer than a guess", "SSIM", "PSNR, dB", "Recognised", "Shadow right on public"]
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
    return f"{title}: {_CHOICES.get(choice, choice)}" if choice else title


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
