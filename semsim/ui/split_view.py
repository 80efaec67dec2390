"""What the page Split inference draws: plain values in, HTML out."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.errors import DataError
from semsim.sets.reader import read_set
from semsim.split.plan import ARMS
from semsim.split.summary import scored, spread_text
from semsim.words import counted

SHOWN = 8  # images a row
_ROWS = 14  # sets shown
_TABLE = "border-collapse:collapse;width:100%;font-size:.92em"
_CELL = (
    "text-align:left;padding:.3rem .5rem;border:0;white-space:nowrap;"
    "border-bottom:1px solid var(--border-color-primary)"
)
_SCROLL = "overflow-x:auto;margin:.5rem 0"
_PICTURE = "width:3rem;height:3rem;image-rendering:pixelated;display:block"
_INVALID = (
    '<span style="background:#fde68a;color:#713f12;border-radius:.3rem;padding:0 .4rem;'
    'font-size:.85em;font-weight:600">invalid</span>'
)
_CHOICES = {
    "best SSIM": "best body by SSIM (needs the originals)",
    "best PSNR": "best body by PSNR (needs the originals)",
    "attacker's choice": "the body an attacker would choose",
    "mean of N": "mean of the bodies",
}


def result_html(result: Mapping[str, Any]) -> str:
    """A finished experiment: table, what comes without features, cost, images, where sets lie."""
    folders = [Path(folder) for folder in result["sets"]]
    parts = [
        "<h3>What the server gets back</h3>",
        scores_html(result["summary"]),
        baselines_html(result["baselines"]),
        "<h3>Images</h3>",
        images_html(folders),
        "<h3>What a defence costs, for one image</h3>",
        costs_html(result["costs"]),
    ]
    if folders:
        sets = counted(len(folders), "reconstruction set lies", "reconstruction sets lie")
        parts.append(
            f"<p>{sets} in <code>{escape(str(folders[0].parent))}</code>. The page "
            "Studies puts them before people, Compare judges metrics on them, "
            "SemSim too.</p>"
        )
    return "".join(parts)


def scores_html(summary: Sequence[Mapping[str, Any]]) -> str:
    """Mean ± standard deviation over seeds, one row a way to attack."""
    more = scored(pd.DataFrame(list(summary)))
    head = ["Network", "Defence", "Accuracy", "Attack", "Runs", "SSIM", "PSNR, dB", "Recognised"]
    head += more
    rows = []
    for row in summary:
        accuracy = f"{row['accuracy']:.1%} ({100 * row['change']:+.1f} points)"
        mark = "" if row["valid"] else f" {_INVALID}"
        share = row.get("recognised")
        cells = [
            escape(str(row["network"])),
            escape(str(row["defence"])),
            accuracy + mark,
            escape(attack_words(str(row["attack"]), str(row["choice"]))),
            str(row["n"]),
            spread_text(dict(row), "ssim", 3),
            spread_text(dict(row), "psnr", 2),
            "–" if pd.isna(share) else f"{share:.0%}",
            *(spread_text(dict(row), name, 3) for name in more),
        ]
        rows.append(cells)
    note = (
        ""
        if all(row["valid"] for row in summary)
        else f"<p>{_INVALID} More than 5 points below the undefended accuracy: a low leak would "
        "say nothing about the defence, only that the network was not trained enough.</p>"
    )
    return table_html(head, rows) + note


def attack_words(attack: str, choice: str) -> str:
    """An attack the way people say it."""
    if not attack:
        return "not attacked"
    title = ARMS[attack].title if attack in ARMS else attack
    return f"{title}: {_CHOICES.get(choice, choice)}" if choice else title


def baselines_html(known: Mapping[str, float]) -> str:
    """What an attacker has who sees no feature at all."""
    return (
        "<p>Without any feature, a grey image reaches SSIM "
        f"{known['grey_ssim']:.3f} and PSNR {known['grey_psnr']:.2f} dB, the mean of the public "
        f"images {known['mean_ssim']:.3f} and {known['mean_psnr']:.2f} dB. The recogniser names "
        f"{known['recogniser']:.0%} of the originals.</p>"
    )


def costs_html(costs: Sequence[Mapping[str, Any]]) -> str:
    """Operations, time and bytes, one row a defence."""
    head = ("Defence", "Client", "Server", "Sent", "Returned")
    rows = [
        [
            escape(f"{cost['network']} {cost['defence']}"),
            f"{cost['client'] / 1e6:.2f} MFLOP, {cost['client_ms']:.1f} ms",
            f"{cost['server'] / 1e6:.2f} MFLOP, {cost['server_ms']:.1f} ms",
            f"{cost['sent']:,} bytes",
            f"{cost['returned']:,} bytes",
        ]
        for cost in costs
    ]
    return table_html(head, rows)


def images_html(folders: Sequence[Path]) -> str:
    """The first images of the sets below one another, the originals on top."""
    rows, dropped = [], max(0, len(folders) - _ROWS)
    for folder in folders[:_ROWS]:
        try:
            found = read_set(folder)
        except DataError:  # somebody deleted it: the others are still worth a look
            rows.append(_captioned(f"{folder.name} is gone", ""))
            continue
        pairs = found.pairs.head(SHOWN)
        if not rows:
            rows.append(_captioned("originals", _pictures(pairs["original"], "original")))
        name = f"{found.model} · {found.run['attack']['name']}"
        rows.append(_captioned(name, _pictures(pairs["reconstruction"], name)))
    if not rows:
        return "<p>There are no images: no system was attacked.</p>"
    more = f"<p>{counted(dropped, 'more set is', 'more sets are')} on disk.</p>" if dropped else ""
    return "".join(rows) + more


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls sideways where it is too wide; cells are HTML already."""
    top = "".join(f'<th style="{_CELL}">{escape(cell)}</th>' for cell in head)
    body = "".join(_row_html(row) for row in rows)
    return (
        f'<div style="{_SCROLL}" tabindex="0" role="region" aria-label="table">'
        f'<table style="{_TABLE}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _captioned(words: str, pictures: str) -> str:
    return (
        f'<div style="margin:.4rem 0"><div style="overflow-wrap:anywhere">{escape(words)}</div>'
        f"{pictures}</div>"
    )


def _pictures(paths: Iterable[str], words: str) -> str:
    shown = "".join(
        f'<img alt="{escape(f"{words}, image {number}")}" style="{_PICTURE}" '
        f'src="data:image/png;base64,{base64.b64encode(Path(path).read_bytes()).decode()}">'
        for number, path in enumerate(paths, start=1)
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:.25rem">{shown}</div>'


def _row_html(row: Sequence[str]) -> str:
    cells = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row)
    return f"<tr>{cells}</tr>"
