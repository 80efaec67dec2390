"""`semsim-studio score` and `weights`: metrics from a terminal, and their weight files.

Exit codes of `score`: 0 when all that was asked for was computed, 1 when a metric was unavailable
or an image was left out, 2 when nothing could be done.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from semsim.base.cli.terminal import (
    DATA,
    STDOUT,
    Json,
    TerminalBar,
    check_table,
    say,
    show,
    text_table,
    told_errors,
    write_table,
)
from semsim.base.errors import SemsimError, SettingsError, WeightsError
from semsim.base.storage.places import settle
from semsim.device import pick_device
from semsim.metrics import METRICS, Resources, all_metrics, find_metric
from semsim.metrics.folder_pairs import folder_scores, match_folders
from semsim.metrics.score_job import number, summaries, summary_text
from semsim.metrics.scoring import (
    ScoreBook,
    pair_sets_of_folders,
    pair_sets_of_labels,
    read_labels,
    score_sets,
)
from semsim.weights import CHECKPOINTS, download, locate, read_manifest

CheckpointsOption = Annotated[Path, typer.Option(help="Folder of weight files.")]


def score(
    originals: Annotated[
        Path | None, typer.Option(help="Folder of original images, with --reconstructions.")
    ] = None,
    reconstructions: Annotated[
        Path | None, typer.Option(help="Folder of images of the same names.")
    ] = None,
    sets: Annotated[
        list[Path] | None,
        typer.Option("--set", help="A reconstruction set, instead of two folders. Repeatable."),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="A study's labels (Parquet), instead of folders.")
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(
            help=f"Names with commas between, or 'all': {', '.join(METRICS)}. "
            "<name>@attacked compares with the image "
            "that was really attacked. semsim:<name> brings its controls, where they are kept."
        ),
    ] = "mse,psnr,ssim",
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write, .parquet or .csv; - is CSV on standard output. For two folders "
            "the default is <reconstructions>-scores.parquet here; .csv without pyarrow."
        ),
    ] = None,
    scores: Annotated[
        Path, typer.Option(help="Where scores of sets are kept, so that none is computed twice.")
    ] = DATA / "scores",
    checkpoints: CheckpointsOption = CHECKPOINTS,
    fetch: Annotated[
        bool, typer.Option("--download", help="Fetch missing weight files first.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    as_json: Json = False,
) -> None:
    """Score reconstructions against their originals; print a table and write the scores."""
    with told_errors():
        check_table(out)
        if as_json and out == STDOUT:
            raise SettingsError("--json and --out - both print; give --out a file.")
        settle()
        resources = Resources(checkpoints=checkpoints, device=pick_device(device))
        names = _names(metrics, resources)
        if fetch:
            _fetch_for(names, resources)
        given = [originals is not None or reconstructions is not None, bool(sets), bool(labels)]
        if sum(given) != 1:
            raise SettingsError(
                "Give one of: --originals with --reconstructions, --set, or --labels."
            )
        if given[0]:
            if originals is None or reconstructions is None:
                raise SettingsError("--originals and --reconstructions go together.")
            complete = _score_folders(originals, reconstructions, names, resources, out, as_json)
        else:
            found = (
                pair_sets_of_folders(sets or [])
                if labels is None
                else pair_sets_of_labels(read_labels(labels))
            )
            with TerminalBar(unit="step") as bar:
                book = score_sets(found, names, resources, scores, bar)
            complete = _show_book(book, out, as_json)
    raise typer.Exit(0 if complete else 1)


def weights(
    names: Annotated[
        list[str] | None, typer.Argument(help="Weight files; all of them when left out.")
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--download", help="Fetch the named files; checks the sha256.")
    ] = False,
    checkpoints: CheckpointsOption = CHECKPOINTS,
    as_json: Json = False,
) -> None:
    """List the weight files metrics need, or fetch the named ones with --download."""
    with told_errors():
        manifest = read_manifest(checkpoints)
        wanted = list(names or manifest)
        if fetch and not names:
            raise SettingsError(f"Name the files to fetch: {', '.join(manifest)}.")
        if fetch:
            with TerminalBar(unit="step") as bar:
                for name in wanted:
                    download(name, checkpoints, bar)
    states = [(name, _weight_state(name, checkpoints)) for name in wanted]
    rows = [
        dict(zip(("name", "state", "where"), (n, *s.split(None, 1)), strict=True))
        for n, s in states
    ]
    show(rows, "\n".join(f"{name:24}{state}" for name, state in states), as_json)
    raise typer.Exit(0 if all(state.startswith("ok") for _, state in states) else 1)


def _score_folders(
    originals: Path,
    reconstructions: Path,
    names: Sequence[str],
    resources: Resources,
    out: Path | None,
    as_json: bool,
) -> bool:
    found = match_folders(originals, reconstructions)
    ending = "parquet" if find_spec("pyarrow") else "csv"
    metrics = [find_metric(name) for name in names]
    with TerminalBar(unit="pair") as bar:
        table = folder_scores(found, metrics, resources, bar)
    target = out or Path(f"{reconstructions.resolve().name}-scores.{ending}")
    write_table(table, target)
    records = table.attrs["metrics"]
    if target == STDOUT:
        say(_record_table(records))
    else:
        rows = [{"metric": name, **record} for name, record in records.items()]
        show(rows, _record_table(records), as_json)
    for note in found.notes:
        say(f"Note: {note}")
    for problem in found.problems:
        say(f"Left out: {problem}")
    unavailable = _say_unavailable(
        {name: record["unavailable"] for name, record in records.items() if "unavailable" in record}
    )
    say(f"Wrote {target}")
    return not found.problems and not unavailable


def _show_book(book: ScoreBook, out: Path | None, as_json: bool) -> bool:
    """Write and print the scores of sets, and what there is not; whether all is there."""
    if out is not None:
        write_table(book.scores, out)
    rows = summaries(book)
    if out == STDOUT:
        say(summary_text(rows))
    else:
        show(rows, summary_text(rows), as_json)
    unavailable = _say_unavailable(book.unavailable)
    for (title, name), reason in book.refused.items():
        say(f"{name} of {title}: {reason}")
    return not unavailable and not book.refused


def _names(text: str, resources: Resources) -> list[str]:
    """The metrics asked for, each once; `UnknownNameError` for one there is not."""
    if text.strip() == "all":
        return list(all_metrics(resources))
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise SettingsError("--metrics is empty. Try --metrics mse,psnr,ssim.")
    asked = [find_metric(name).spec.name for name in names]
    return list(dict.fromkeys(one for name in asked for one in _with_controls(name, resources)))


def _with_controls(name: str, resources: Resources) -> list[str]:
    """A metric and, of a SemSim, its own start and its best single block, if kept."""
    if not name.startswith("semsim:"):
        return [name]
    from semsim.learning.baselines import controls_of
    from semsim.metrics.provenance import checkpoint_of  # with what trains

    checkpoint = checkpoint_of(name)
    path = resources.checkpoints / f"{checkpoint}.safetensors"
    if not checkpoint or not path.is_file():
        return [name]
    try:
        found, _ = controls_of(path)
    except WeightsError:  # which the metric itself will say
        return [name]
    reference = name.removeprefix(f"semsim:{checkpoint}")
    return [name, *(f"semsim:{control.stem}{reference}" for control in found.values())]


def _fetch_for(names: Sequence[str], resources: Resources) -> None:
    needed = dict.fromkeys(w for name in names for w in find_metric(name).spec.weights)
    for name in needed:
        if _weight_state(name, resources.checkpoints).startswith("ok"):
            continue
        try:
            with TerminalBar(unit="B") as bar:
                download(name, resources.checkpoints, bar)
        except WeightsError as error:  # the metrics that need it will say so; others go on
            say(f"Not fetched: {error}")


def _weight_state(name: str, checkpoints: Path) -> str:
    try:
        return f"ok       {locate(name, checkpoints)}"
    except SemsimError as error:
        return f"missing  {error}"


def _say_unavailable(reasons: dict[str, str]) -> bool:
    for name, reason in reasons.items():
        say(f"{name} is unavailable: {reason}")
    return bool(reasons)


def _record_table(records: dict[str, dict[str, Any]]) -> str:
    header = ["metric", "mean", "sd", "n", "infinite", ""]
    rows = []
    for name, record in records.items():
        if "unavailable" in record:
            rows.append([name, "unavailable", "", "", "", ""])
            continue
        error = record["standard_error"]
        spread = "" if error is None else f"± {error:.4g} (standard error)"
        notes = "; ".join(part for part in (spread, *record["notes"]) if part)
        facts = (number(record["mean"]), number(record["sd"]), record["n"], record["n_inf"])
        rows.append([name, *(str(fact) for fact in facts), notes])
    return text_table(header, rows)
