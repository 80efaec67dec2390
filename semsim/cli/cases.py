"""`python -m semsim cases`: a picture of four cases, where people and a metric agree or do not."""

from pathlib import Path
from typing import Annotated

import typer

from semsim.cli.compare import Request, judge, requested
from semsim.cli.options import taking
from semsim.errors import UnknownNameError
from semsim.metrics import MetricSpec
from semsim.metrics.provenance import control_in
from semsim.reporting.canvas import DOUBLE, SINGLE
from semsim.reporting.cases import case_figure
from semsim.reporting.export import check_picture, write_picture


@taking(request=requested)
def cases(
    request: Request,
    metric: Annotated[str, typer.Option(help="The metric that people are set against.")] = "psnr",
    out: Annotated[Path, typer.Option(help="Picture, .png or .svg.")] = Path("cases.png"),
    width: Annotated[
        float, typer.Option(min=SINGLE, help="In mm: 89 is one column, 183 two.")
    ] = DOUBLE,
) -> None:
    """Draw one reconstruction for each way people and a metric can judge, and what both say."""
    check_picture(out, "--out")
    analysis, _ = judge(request)
    per_image: dict[str, MetricSpec] = {one.name: one for one in analysis.specs if one.per_image}
    if metric not in per_image:
        known = ", ".join(per_image) or "none"
        raise UnknownNameError(f"The scores have no metric of images called {metric!r}: {known}.")
    others = [spec for name, spec in per_image.items() if not control_in(name.partition("@")[0])]
    figure = case_figure(analysis, per_image[metric], others)
    write_picture(figure, out, "--out", dpi=150, width_mm=width)
    typer.echo(f"{figure.caption}\nWrote {out}")
