"""`python -m semsim split …`: train, defend and attack networks cut between client and server."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from semsim.cli.job import do
from semsim.grid.processes import checked_workers
from semsim.jobs.folders import read_job, read_json
from semsim.reporting.export import png, svg
from semsim.split.cuts import cut_figures, grid
from semsim.split.orders import queue_split
from semsim.split.plan import ARMS, PRESETS, SplitPlan, plan_from
from semsim.split.session import Place
from semsim.split.summary import cost_text, summary_text
from semsim.terminal import DATA, told_errors
from semsim.weights import CHECKPOINTS

app = typer.Typer(no_args_is_help=True, help="Split inference: defences and model inversion.")

_Name = Annotated[str | None, typer.Option(help="Name of the experiment.")]
_Preset = Annotated[str, typer.Option(help="Plan to begin with: small, paper.")]
_Dataset = Annotated[str | None, typer.Option(help="Data set, as digits or folder:root=photos.")]
_Epochs = Annotated[int | None, typer.Option(help="Epochs of networks trained whole.")]
_Shadow = Annotated[int | None, typer.Option(help="Epochs of shadow head and decoder.")]
_Images = Annotated[int | None, typer.Option(help="Test images that are judged.")]
_DataDir = Annotated[Path, typer.Option(help="Data folder.")]
_Checkpoints = Annotated[Path, typer.Option(help="Folder of weights, for --metric.")]
_Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
_Job = Annotated[Path | None, typer.Option(help="Job to resume, as `job` does.")]
_Workers = Annotated[int, typer.Option(help="Processes that train and attack.")]
_Seeds = Annotated[list[int] | None, typer.Option(help="Repeatable.")]


@app.command("run")
def run_command(
    file: Annotated[Path | None, typer.Option(help="JSON file of a plan; others replace.")] = None,
    name: _Name = None,
    preset: _Preset = "small",
    dataset: _Dataset = None,
    network: Annotated[
        list[str] | None, typer.Option(help="Network, as resnet18:h=2,t=1. Repeatable.")
    ] = None,
    defence: Annotated[
        list[str] | None, typer.Option(help="Defence, as ensembler:bodies=4. Repeatable.")
    ] = None,
    attack: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(ARMS)}. Repeatable.")
    ] = None,
    defence_seed: _Seeds = None,
    attack_seed: _Seeds = None,
    epochs: _Epochs = None,
    ensemble_epochs: Annotated[int | None, typer.Option(help="Of Ensembler's stage 2.")] = None,
    shadow_epochs: _Shadow = None,
    images: _Images = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="One more metric, as semsim:mine. Repeatable.")
    ] = None,
    attack_invalid: Annotated[
        bool, typer.Option("--attack-invalid", help="Attack under-trained systems too.")
    ] = False,
    data_dir: _DataDir = DATA,
    checkpoints: _Checkpoints = CHECKPOINTS,
    device: _Device = "auto",
    workers: _Workers = 1,
    job: _Job = None,
) -> None:
    """Train the systems, attack them, write sets; Ctrl-C leaves it so that it can be resumed."""
    given = locals()
    with told_errors():
        if job is not None:
            do(read_job(job))
            return
        place = Place(data=data_dir, checkpoints=checkpoints, device=device)
        do(queue_split(plan_of_options(given), place, checked_workers(workers)))


@app.command("study")
def study_command(
    name: _Name = None,
    preset: _Preset = "small",
    dataset: _Dataset = None,
    network: Annotated[str, typer.Option(help="Network without its cuts.")] = "small",
    h: Annotated[list[int] | None, typer.Option(help="First cut. Repeatable.")] = None,
    t: Annotated[list[int] | None, typer.Option(help="Second cut, from the end.")] = None,
    attack: Annotated[list[str] | None, typer.Option(help="As for run. Repeatable.")] = None,
    attack_seed: _Seeds = None,
    epochs: _Epochs = None,
    shadow_epochs: _Shadow = None,
    images: _Images = None,
    data_dir: _DataDir = DATA,
    checkpoints: _Checkpoints = CHECKPOINTS,
    device: _Device = "auto",
    workers: _Workers = 1,
) -> None:
    """Where to cut: the undefended network at every pair of split points (Fig. 2 and 3).

    Writes a figure for each attack, <data-dir>/split/<name>-<attack>.png and .svg.
    """
    given = {**locals(), "file": None, "defence": ["none"], "defence_seed": [0]}
    given |= {"ensemble_epochs": None, "metric": None, "attack_invalid": True}
    given["attack"] = attack or ["adaptive"]
    given["name"] = name or "cuts"
    with told_errors():
        given["network"] = grid(network, h or [1, 2], t or [1])
        place = Place(data=data_dir, checkpoints=checkpoints, device=device)
        outcome = do(queue_split(plan_of_options(given), place, checked_workers(workers)))
        if outcome is not None:
            _draw(outcome, data_dir / "split", given["name"])


def _draw(outcome: dict[str, Any], folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for attack, figure in cut_figures(outcome).items():
        path = folder / f"{name}-{attack}.png"
        path.write_bytes(png(figure))
        path.with_suffix(".svg").write_text(svg(figure, live=False), encoding="utf-8")
        typer.echo(f"Wrote {path}")


def plan_of_options(given: dict[str, Any]) -> SplitPlan:
    """The plan that options mean, on top of the file or the preset."""
    if given["file"] is not None:
        base = plan_from(read_json(given["file"]))
    elif given["preset"] in PRESETS:
        base = PRESETS[given["preset"]]
    else:
        raise typer.BadParameter(f"--preset is one of {', '.join(PRESETS)}")
    lists = {
        "networks": given["network"],
        "defences": given["defence"],
        "attacks": given["attack"],
        "defence_seeds": given["defence_seed"],
        "attack_seeds": given["attack_seed"],
        "metrics": given["metric"],
    }
    changes: dict[str, Any] = {key: tuple(values) for key, values in lists.items() if values}
    changes |= {k: given[k] for k in ("name", "dataset", "images") if given[k] is not None}
    changes["attack_invalid"] = given["attack_invalid"] or base.attack_invalid
    train = {k: given[k] for k in ("epochs", "ensemble_epochs") if given[k] is not None}
    shadow = given["shadow_epochs"]
    tool = {} if shadow is None else {"epochs": shadow, "decoder_epochs": shadow}
    changes |= {"train": replace(base.train, **train), "shadow": replace(base.shadow, **tool)}
    return replace(base, **changes)


def outcome_text(outcome: dict[str, Any]) -> str:
    """The table of an experiment, what comes without any feature, what defences cost."""
    known = outcome["baselines"]
    lines = [summary_text(pd.DataFrame(outcome["summary"])), ""]
    lines.append(
        f"Without any feature: a grey image has SSIM {known['grey_ssim']:.3f} and PSNR "
        f"{known['grey_psnr']:.2f} dB, the mean public image {known['mean_ssim']:.3f} and "
        f"{known['mean_psnr']:.2f} dB."
    )
    lines += [cost_text(cost) for cost in outcome["costs"]]
    return "\n".join([*lines, *outcome["sets"]])
