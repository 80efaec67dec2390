"""A table as CSV, LaTeX, Markdown and HTML."""

import base64
from collections.abc import Callable
from pathlib import Path

import jinja2
import pandas as pd

from semsim.base.storage.places import files_of
from semsim.base.table_files import escaped, of_table
from semsim.base.words import in_markdown
from semsim.reporting.tables import Table


def templates_in(*folders: Path) -> jinja2.Environment:
    """The templates of folders, which escape what they are given and must be given all of it."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


TEMPLATES = templates_in(files_of("semsim.reporting"))
_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": "$<$", ">": "$>$", "|": "$|$", "−": "$-$", "–": "--", "±": r"$\pm$", "×": r"$\times$"},
    # After a line break LaTeX takes these two for arguments.
    **{"[": "{[}", "*": "{*}"},
    **{"∞": r"$\infty$", "ρ": r"$\rho$", "τ": r"$\tau$", "κ": r"$\kappa$", "·": r"$\cdot$"},
    **{"ε": r"$\varepsilon$", "δ": r"$\delta$"},
    **{"↑": r"$\uparrow$", "↓": r"$\downarrow$", "…": r"\dots{}", "≥": r"$\geq$"},
}


def png_address(content: bytes) -> str:
    """An address that holds a PNG file."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def csv(frame: pd.DataFrame) -> str:
    """Every digit of the numbers; text that a spreadsheet would run has an apostrophe in front."""
    safe = of_table(frame, escaped).rename(columns=escaped)
    return safe.to_csv(index=False, lineterminator="\n")


def latex(table: Table) -> str:
    """A `table` environment for the packages booktabs and, as it is scaled to fit, graphicx."""
    head = " & ".join(_latex(str(name)) for name in table.cells.columns)
    body = _body(table, _latex, lambda text: rf"\textbf{{{text}}}")
    lines = [" & ".join(line) + r" \\" for line in body]
    stop = "" if table.title.endswith("?") else "."
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex(f'{table.title}{stop} {table.caption}')}}}",
            rf"\label{{tab:{table.name}}}",
            r"\resizebox{\linewidth}{!}{%",
            rf"\begin{{tabular}}{{l{'r' * (table.cells.shape[1] - 1)}}}",
            r"\toprule",
            rf"{head} \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def markdown(table: Table) -> str:
    """A table in Markdown with its title above and its caption below; the best in bold."""
    head = [in_markdown(str(name)) or " " for name in table.cells.columns]
    lines = _body(table, in_markdown, lambda text: f"**{text}**")
    rule = [":--", *["--:"] * (len(head) - 1)]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *lines])
    return f"**{in_markdown(table.title)}**\n\n{rows}\n\n{in_markdown(table.caption)}\n"


def html(table: Table) -> str:
    """A table that scrolls sideways where the screen is narrow; classes begin with `semsim-`."""
    return TEMPLATES.get_template("table.html.jinja").render(table=table)


def _body(
    table: Table, written: Callable[[str], str], bold: Callable[[str], str]
) -> list[list[str]]:
    """The cells line by line as a language has them, the best in bold."""
    return [
        [
            bold(written(text)) if (i, j) in table.best else written(text)
            for j, text in enumerate(line)
        ]
        for i, line in enumerate(table.cells.to_numpy())
    ]


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
