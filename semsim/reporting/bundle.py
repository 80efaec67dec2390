"""An analysis as a folder: the report, every table and every figure in every form.

<folder>/report.html   settings.json
         tables/<name>.csv .tex .md
         figures/<name>[-<metric>].svg .png .csv
"""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from semsim.base.errors import DataError
from semsim.base.progress import Progress, Report, silent
from semsim.base.stats.analysis import Analysis
from semsim.base.storage.atomic import write_text
from semsim.reporting import canvas, writing
from semsim.reporting.canvas import Drawn
from semsim.reporting.export import write_both
from semsim.reporting.figures import figures
from semsim.reporting.methods import Origin
from semsim.reporting.report import report_html, settings_record
from semsim.reporting.tables import Table, tables

_OURS = ("report.html", "settings.json", "tables", "figures")


def write_bundle(
    analysis: Analysis,
    folder: Path,
    origin: Origin | None = None,
    *,
    overwrite: bool = False,
    width_mm: float = canvas.DOUBLE,
    report: Report = silent,
) -> Path:
    """Write everything about an analysis into `folder`, all or nothing, and return it.

    Args:
        overwrite: Replace an older bundle there; other files in the folder are left alone.
        width_mm: Of the figures; 89 is one column of a journal, 183 two.

    Raises:
        DataError: For a folder that is not empty, or cannot be written.
    """
    origin = origin or Origin()
    try:
        _check_free(folder, overwrite)
        folder.parent.mkdir(parents=True, exist_ok=True)
        drawn = figures(analysis)
        with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as made:
            part = Path(made)
            for name in ("tables", "figures"):
                (part / name).mkdir()
            for step, figure in enumerate(drawn):
                report(Progress(step, len(drawn) + 1, figure.title))
                write_figure(figure, part / "figures" / figure.stem, width_mm)
            for table in tables(analysis):
                _write_table(table, part / "tables")
            report(Progress(len(drawn), len(drawn) + 1, "report"))
            record = json.dumps(settings_record(analysis, origin), indent=1, ensure_ascii=False)
            write_text(part / "settings.json", record + "\n")
            write_text(part / "report.html", report_html(analysis, origin))
            _replace(folder, part)
    except OSError as error:
        raise DataError(f"{folder} cannot be written ({error}). Choose another folder.") from error
    report(Progress(len(drawn) + 1, len(drawn) + 1, "done"))
    return folder


def _check_free(folder: Path, overwrite: bool) -> None:
    if folder.exists() and any(folder.iterdir()) and not overwrite:
        raise DataError(f"{folder} is not empty. Choose another folder, or ask to overwrite it.")


def _replace(folder: Path, part: Path) -> None:
    """Put what is in `part` into the folder, in the place of an older bundle."""
    folder.mkdir(exist_ok=True)
    for name in _OURS:
        old = folder / name
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
        (part / name).rename(old)


def write_figure(figure: Drawn, stem: Path, width_mm: float = canvas.DOUBLE) -> None:
    """Write the figure as PNG and SVG, and its table as CSV, beside each other.

    Args:
        stem: Of their paths, to which each has its ending added.
    """
    write_both(figure, stem.with_name(f"{stem.name}.png"), width_mm)
    write_text(stem.with_name(f"{stem.name}.csv"), writing.csv(figure.frame))


def _write_table(table: Table, folder: Path) -> None:
    write_text(folder / f"{table.name}.csv", writing.csv(table.frame))
    write_text(folder / f"{table.name}.tex", writing.latex(table))
    write_text(folder / f"{table.name}.md", writing.markdown(table))
