"""Votes and scores of a small study, as tables."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from annotation.formats.plain import read_table


def made_tables(n_models=5, n_images=8):
    """Votes of three people and scores: PSNR falls with the share who recognise, as it should."""
    draw = np.random.default_rng(0)
    votes, scores = [], []
    for m in range(n_models):
        for i in range(n_images):
            key = {"dataset": "d", "attack": "a", "model": f"net/{m}", "image_id": f"{i:03}"}
            chance = 1 - m / n_models
            votes += [
                {
                    **{**key, "study": "made", "class_name": "cat", "annotator": f"p{person}"},
                    **{"answer": "cat" if seen else "none", "recognised": seen},
                    **{"votes_per_item": 3, "headline": "mean-response", "simulated": False},
                }
                for person, seen in enumerate(draw.random(3) < chance)
            ]
            scores.append({**key, "metric": "psnr", "value": 20 * chance + draw.random()})
            scores.append({**key, "metric": "mine", "value": chance + draw.random()})
        scores.append({**key, "image_id": None, "metric": "set", "value": float(m)})
    return pd.DataFrame(votes), pd.DataFrame(scores)


def sheet(path, rows, *, inline=False):
    """An Excel file with the texts and numbers of `rows` on its first sheet, and a second one."""
    words = [cell for row in rows for cell in row if isinstance(cell, str)]

    def cell(place, value):
        at = f'r="{chr(65 + place[1])}{place[0] + 1}"'
        if value is None:
            return ""
        if isinstance(value, bool):
            return f'<c {at} t="b"><v>{value:d}</v></c>'
        if not isinstance(value, str):
            return f"<c {at}><v>{value}</v></c>"
        if inline:
            return f'<c {at} t="inlineStr"><is><t>{value}</t></is></c>'
        return f'<c {at} t="s"><v>{words.index(value)}</v></c>'

    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    lines = [
        f'<row r="{n + 1}">{"".join(cell((n, k), value) for k, value in enumerate(row))}</row>'
        for n, row in enumerate(rows)
    ]
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "xl/workbook.xml",
            f'<workbook {main} xmlns:r="{links}"><sheets><sheet name="votes" r:id="r2"/>'
            f'<sheet name="notes" r:id="r1"/></sheets></workbook>',
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/>'
            '<Relationship Id="r2" Target="worksheets/sheet2.xml"/></Relationships>',
        )
        shared = "".join(f"<si><r><t>{w[:1]}</t></r><r><t>{w[1:]}</t></r></si>" for w in words)
        book.writestr("xl/sharedStrings.xml", f"<sst {main}>{shared}</sst>")
        for number, body in (("1", ""), ("2", "".join(lines))):
            book.writestr(
                f"xl/worksheets/sheet{number}.xml",
                f"<worksheet {main}><sheetData>{body}</sheetData></worksheet>",
            )
    return path


def read_typed(path: Path, types: Mapping[str, str]) -> pd.DataFrame:
    """Return an exported table, whose texts become what they stand for."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    read = read_table(path, types)
    return read.assign(**{name: _typed(read[name], kind) for name, kind in types.items()})


def _typed(column: pd.Series, kind: str) -> pd.Series:
    if kind.startswith("datetime64"):
        column = pd.to_datetime(column, format="ISO8601", utc=True)
    if kind in ("bool", "boolean"):
        column = column.astype(object).map({"True": True, "False": False}.get)
    return column.astype(kind)
