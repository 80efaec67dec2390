"""`semsim-studio examples`: a picture of four cases, where people and a metric agree or do not."""

from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.base.cli.options import taking
from semsim.base.cli.terminal import say
from semsim.base.metric_spec import control_in
from semsim.base.registry import unknown
from semsim.base.storage.records import CASES, write_record
from semsim.cli.compare import Request, judge, requested
from semsim.metrics import MetricSpec
from semsim.reporting.canvas import DOUBLE, SINGLE, Drawn
from semsim.reporting.cases import case_figure
from semsim.reporting.export import check_picture, write_picture
from semsim.reporting.writing import png_address


@taking(request=requested)
def examples(
    request: Request,
    metric: Annotated[str, typer.Option(help="The metric that people are set against.")] = "psnr",
    out: Annotated[Path, typer.Option(help="Picture, .png or .svg.")] = Path("cases.png"),
    rows: Annotated[
        Path | None,
        typer.Option(help="The same as JSON too, with the images in it."),
    ] = None,
    width: Annotated[
        float, typer.Option(min=SINGLE, help="In mm: 89 is one column, 183 two.")
    ] = DOUBLE,
) -> None:
    """Draw one reconstruction for each way in which people and a metric can agree or differ."""
    check_picture(out, "--out")
    analysis = judge(request).analysis
    per_image: dict[str, MetricSpec] = {one.name: one for one in analysis.specs if one.per_image}
    if metric not in per_image:
        raise unknown("metric of images in the scores", metric, per_image)
    others = [spec for name, spec in per_image.items() if not control_in(name.partition("@")[0])]
    figure = case_figure(analysis, per_image[metric], others)
    write_picture(figure, out, "--out", dpi=150, width_mm=width)
    if rows is not None:
        write_record(rows, CASES, told(figure))
    typer.echo(figure.caption)
    say(f"Wrote {out}")


def told(figure: Drawn) -> dict[str, Any]:
    """Title, caption and cases of the figure; the images are data addresses of their files."""
    held = {
        one: [png_address(Path(path).read_bytes()) for path in figure.frame[one]]
        for one in ("original", "reconstruction")
    }
    cases = figure.frame.assign(**held).to_dict("records")
    return {"title": figure.title, "caption": figure.caption, "cases": cases}
