"""`semsim-studio score` and `weights`: metrics from a terminal, and their weight files.

Exit codes of `score`: 0 when all that was asked for was computed, 1 when a metric was unavailable
or an image was left out, 2 when nothing could be done.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer

from semsim.base.cli.options import taking
from semsim.base.cli.terminal import (
    DATA,
    STDOUT,
    CheckpointsOption,
    DeviceOption,
    Json,
    TerminalBar,
    check_table,
    list_text,
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
from semsim.metrics.scoring import (
    PairSet,
    ScoreBook,
    match_folders,
    pair_sets_of_folders,
    pair_sets_of_labels,
    read_labels,
    score_sets,
    wide_table,
)
from semsim.weights import CHECKPOINTS, download, locate, read_manifest


class PairSource(NamedTuple):
    """Source of pairs: two folders, sets, or a study's labels."""

    originals: Annotated[Path | None, typer.Argument(help="Folder of original images.")] = None
    reconstructions: Annotated[
        Path | None, typer.Argument(help="Folder of images of the same names.")
    ] = None
    sets: Annotated[
        list[Path] | None,
        typer.Option("--set", help="A reconstruction set, instead of two folders. Repeatable."),
    ] = None
    labels: Annotated[
        Path | None, typer.Option(help="A study's labels (Parquet), instead of folders.")
    ] = None

    def read(self) -> list[PairSet]:
        """Read the pairs; `SettingsError` unless the options name one kind."""
        folders = self.originals is not None or self.reconstructions is not None
        if sum((folders, bool(self.sets), bool(self.labels))) != 1:
            raise SettingsError(
                "Give one of: two folders, ORIGINALS and RECONSTRUCTIONS, or --set, or --labels."
            )
        if self.labels is not None:
            return pair_sets_of_labels(read_labels(self.labels))
        if self.sets:
            return pair_sets_of_folders(self.sets)
        if self.originals is None or self.reconstructions is None:
            raise SettingsError(f"Give the folder of reconstructions after {self.originals}.")
        return [match_folders(self.originals, self.reconstructions)]


class Machine(NamedTuple):
    """Folder of weights, whether to fetch them first, and device of the metrics."""

    checkpoints: CheckpointsOption = CHECKPOINTS
    fetch: Annotated[bool, typer.Option("--download", help="Fetch missing weight files first.")] = (
        False
    )
    device: DeviceOption = "auto"


@taking(source=PairSource, machine=Machine)
def score(
    source: PairSource,
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
    cache_dir: Annotated[
        Path, typer.Option(help="Folder that keeps scores of sets, so none is computed twice.")
    ] = DATA / "scores",
    *,
    machine: Machine,
    as_json: Json = False,
) -> None:
    """Score reconstructions against their originals; print a table and write the scores."""
    check_table(out)
    if as_json and out == STDOUT:
        raise SettingsError("--json and --out - both print; give --out a file.")
    settle()
    resources = Resources(checkpoints=machine.checkpoints, device=pick_device(machine.device))
    names = _names(metrics, resources)
    if machine.fetch:
        _fetch_for(names, resources)
    found, beside = source.read(), source.reconstructions
    if beside is not None:
        out = out or _beside(beside)
    with TerminalBar(unit="pair") as bar:
        book = score_sets(found, names, resources, cache_dir if beside is None else None, bar)
    table = book.scores if beside is None else wide_table(found[0], book, names)
    complete = _show(found, book, table, out, as_json)
    if beside is not None and out != STDOUT:
        say(f"Wrote {out}")
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
    states = [[name, *_weight_state(name, checkpoints).split(None, 1)] for name in wanted]
    head = ("name", "state", "where")
    rows = [dict(zip(head, one, strict=True)) for one in states]
    show({"files": rows}, list_text(head, states), as_json)
    if names:  # a list of all never fails
        raise typer.Exit(0 if all(state == "ok" for _, state, _ in states) else 1)


def _show(
    found: Sequence[PairSet], book: ScoreBook, table: pd.DataFrame, out: Path | None, as_json: bool
) -> bool:
    """Write the table of scores and print summaries and what there is not; whether all is there."""
    if out is not None:
        write_table(table, out)
    outcome, records = book.record(), table.attrs.get("metrics", {})
    rows = [{"metric": name, **one} for name, one in records.items()] or outcome["rows"]
    text = summary_text(rows)
    if out == STDOUT:
        say(text)
    else:
        show({"metrics" if records else "sets": rows}, text, as_json)
    left_out = [f"Left out: {problem}" for one in found for problem in one.problems]
    notes = [f"Note: {note}" for one in found for note in one.notes]
    own = [(row["metric"], row["unavailable"]) for row in rows if "unavailable" in row]
    reasons = [f"{name} is unavailable: {why}" for name, why in own] or _reasons(outcome)
    for line in (*notes, *left_out, *reasons):
        say(line)
    return not left_out and exit_code(outcome) == 0


def _beside(reconstructions: Path) -> Path:
    """Name the file for the table of two folders that no --out names."""
    ending = "parquet" if find_spec("pyarrow") else "csv"
    return Path(f"{reconstructions.resolve().name}-scores.{ending}")


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
    """A metric and, of a SemSim, its initial weights and the calibrated baseline, if kept."""
    if not name.startswith("semsim:"):
        return [name]
    from semsim.base.metric_spec import checkpoint_of  # with what trains
    from semsim.learning.baselines import controls_of

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


def sets_of(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of `summaries` that a job has left, as a part of JSON."""
    return {"sets": outcome["rows"]}


def told(outcome: Mapping[str, Any]) -> str:
    """Return a job's result as text: the means, and unavailable or refused metrics."""
    return "\n".join([summary_text(outcome["rows"]), *_reasons(outcome)])


def exit_code(outcome: Mapping[str, Any] | None) -> int:
    """Return 0 where all that was asked for was computed, else 1."""
    return int(outcome is None or bool(outcome["unavailable"] or outcome["refused"]))


def _reasons(outcome: Mapping[str, Any]) -> list[str]:
    """Say of each metric, or of it and a set, why there are no scores."""
    return [
        *(f"{name} is unavailable: {reason}" for name, reason in outcome["unavailable"].items()),
        *(f"{one['metric']} of {one['set']}: {one['reason']}" for one in outcome["refused"]),
    ]


def summary_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of metrics of sets, `summaries`, or of one table of pairs, for a terminal."""
    of_sets = not rows or "model" in rows[0]
    known = ("attacker",) if any(row.get("attacker") for row in rows) else ()
    keys = ("dataset", "attack", *known, "model", "metric") if of_sets else ("metric",)
    header = [*keys, "mean", "sd", *(("values", "infinite") if of_sets else ("n", "infinite", ""))]
    told = []
    for row in rows:
        if "unavailable" in row:
            told.append([row["metric"], "unavailable", "", "", "", ""])
            continue
        facts = [_number(row["mean"]), _number(row["sd"]), str(row["n"]), str(row["n_inf"])]
        told.append([*(row[key] for key in keys), *facts, *([] if of_sets else [_remark(row)])])
    return text_table(header, told)


def _remark(row: Mapping[str, Any]) -> str:
    error = row["standard_error"]
    spread = "" if error is None else f"± {error:.4g} (standard error)"
    return "; ".join(part for part in (spread, *row["notes"]) if part)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
