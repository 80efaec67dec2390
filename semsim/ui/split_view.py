"""What the page Split inference draws: plain values in, HTML out."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.errors import DataError
from semsim.sets.reader import read_set
from semsim.split.plan import ARMS
from semsim.split.summary import scored, spread_text
from semsim.ui.markup import pieces, png_address
from semsim.words import counted

_HTML = pieces("split.html")
SHOWN = 8  # images a row
_ROWS = 14  # sets shown
_CHOICES = {
    "best SSIM": "best body by SSIM (needs the originals)",
    "best PSNR": "best body by PSNR (needs the originals)",
    "attacker's choice": "the body an attacker would choose",
    "mean of N": "mean of the bodies",
}


def result_html(result: Mapping[str, Any]) -> str:
    """A finished experiment: table, what comes without features, cost, images, where sets lie."""
    folders = [Path(folder) for folder in result["sets"]]
    return _HTML.result(
        scores_html(result["summary"]),
        _HTML.baselines(result["baselines"]),
        images_html(folders),
        costs_html(result["costs"]),
        counted(len(folders), "reconstruction set lies", "reconstruction sets lie"),
        str(folders[0].parent) if folders else "",
    )


def scores_html(summary: Sequence[Mapping[str, Any]]) -> str:
    """Mean ± standard deviation over seeds, one row a way to attack."""
    more = scored(pd.DataFrame(list(summary)))
    head = ["Network", "Defence", "Accuracy", "Attack", "Runs", "SSIM", "PSNR, dB", "Recognised"]
    rows = [
        [
            row["network"],
            row["defence"],
            _HTML.accuracy(
                f"{row['accuracy']:.1%} ({100 * row['change']:+.1f} points)", row["valid"]
            ),
            attack_words(str(row["attack"]), str(row["choice"])),
            row["n"],
            spread_text(dict(row), "ssim", 3),
            spread_text(dict(row), "psnr", 2),
            "–" if pd.isna(share := row.get("recognised")) else f"{share:.0%}",
            *(spread_text(dict(row), name, 3) for name in more),
        ]
        for row in summary
    ]
    return _HTML.scores([*head, *more], rows, all(row["valid"] for row in summary))


def attack_words(attack: str, choice: str) -> str:
    """An attack the way people say it."""
    if not attack:
        return "not attacked"
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


def images_html(folders: Sequence[Path]) -> str:
    """The first images of the sets below one another, the originals on top."""
    rows: list[tuple[str, list[tuple[str, str]]]] = []
    for folder in folders[:_ROWS]:
        try:
            found = read_set(folder)
        except DataError:  # somebody deleted it: the others are still worth a look
            rows.append((f"{folder.name} is gone", []))
            continue
        pairs = found.pairs.head(SHOWN)
        if not rows:
            rows.append(("originals", _pictures(pairs["original"], "original")))
        name = f"{found.model} · {found.run['attack']['name']}"
        rows.append((name, _pictures(pairs["reconstruction"], name)))
    dropped = len(folders) - _ROWS
    more = counted(dropped, "more set is", "more sets are") if dropped > 0 else ""
    return _HTML.images(rows, more)


def _pictures(paths: Iterable[str], words: str) -> list[tuple[str, str]]:
    return [
        (f"{words}, image {number}", png_address(Path(path).read_bytes()))
        for number, path in enumerate(paths, start=1)
    ]
