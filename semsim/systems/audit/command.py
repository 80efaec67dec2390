"""`semsim-studio audit`: what a network's architecture gives away to layer-wise inversion."""

import copy
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import torch
import torch.nn.functional as F
import typer
from torch import Tensor, nn

from semsim.api.attack import Classifier
from semsim.attacks.descent import attack_updates
from semsim.attacks.linear.first_layer import first_layer
from semsim.attacks.linear.rank import Shape
from semsim.attacks.linear.spear import Spear
from semsim.attacks.observe import BatchGradient, assigned, observe_round
from semsim.attacks.parameters import ALL
from semsim.base.cli.terminal import Json, say, show_told, text_table, told_errors
from semsim.base.errors import DataError, SemsimError, SettingsError
from semsim.base.registry import built, read_plugin
from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.metrics.pixel import exact
from semsim.reporting.export import write_picture
from semsim.systems.audit.advice import TryOut, advice, described, signed, stated, try_outs
from semsim.systems.audit.figure import leak_figure
from semsim.systems.audit.network import ReadNetwork, leaked_layers, network_of, read_network
from semsim.systems.audit.numeric_rank import CheckedLayer, checked_layers, measured_index
from semsim.systems.audit.security_index import CNN3, SecurityIndex, security_index
from semsim.targets import TARGETS
from semsim.targets.model import TargetModel, load_target
from semsim.targets.noticed import Sign, signs
from semsim.types import Reconstruction

_BATCHES = (1, 2, 4, 8, 16, 32, 48)  # that SPEAR is tried on
_STARTS = 2_000  # of SPEAR: seconds
_ADVICE = "Share nothing of this model; ask for its architecture and compare the weights with it."
_ORDINARY = (
    "No sign of a changed model. That is no proof: signs are known of published attacks alone."
)
_YES_OR_NO = {True: "yes", False: "no", None: "–"}
_CLASSES = 10  # of a target that was not trained
_SHOWN = 8  # try-outs, of which a deep network has dozens


@dataclass(frozen=True, kw_only=True)
class Audited:
    """A network under audit.

    Attributes:
        network: Its layers, as c(M) counts them.
    """

    name: str
    model: nn.Module
    network: ReadNetwork
    input_shape: Shape


def audit(
    network: Annotated[
        str,
        typer.Argument(
            help="cnn3:1 to cnn3:4, built in; a target of campaigns, as mlp or imprint:bins=64, or "
            "the .safetensors file of a trained one; or model.py:Net, a class of a file of yours. "
            "CAUTION: the file is run, as by `python model.py`. Audit only files you trust."
        ),
    ],
    size: Annotated[
        str, typer.Option("--input", help="Channels, height and width of an image.")
    ] = "3x32x32",
    verify: Annotated[
        bool, typer.Option(help="Check ranks with the network's own weights and a gradient.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of weights and of the image of the check.")] = 0,
    figure: Annotated[Path | None, typer.Option(help="File for the picture: .png or .svg.")] = None,
    as_json: Json = False,
) -> None:
    """Print c(M) of a network layer by layer, its meaning, and the effect of small changes.

    A layer that widens, putting out more values than it gets, binds the input of the next one
    (COPA's pull-back); the paper asks that its weight has full rank too, which --verify computes.
    The class of a file is made without arguments. c(M) is defined for layers that follow one
    another, without shortcuts. Then come batches that SPEAR gets back exactly, where the network
    begins with a linear layer and ReLU, and what a client that received the model could notice.
    """
    with told_errors():
        shape = shape_of(size)
        model = model_of(network, shape, seed)
        try:
            read = read_network(model, shape)
            found = Audited(name=network, model=model, network=read, input_shape=shape)
            tables, parts = _of_layers(found, verify, seed, figure)
        except SettingsError as error:
            if verify or figure is not None or not _answers(model, shape):
                raise
            tables, parts = {}, [f"c(M) is not defined here: {error}"]
        try:
            batches, noticed = client_view(model, shape)
        except SemsimError as error:
            parts.append(f"Signs for a client are unknown: {error}")
        else:
            tables["client"] = [asdict(one) for one in noticed]
            parts += [*batches, client_text(noticed)]
        told = "\n\n".join([f"{network}, input {size}", *parts])
        show_told(tables, told, as_json)
        if figure is not None:
            say(f"Wrote {figure}")


def _of_layers(
    found: Audited, verify: bool, seed: int, figure: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """Tables and paragraphs on c(M); the figure is written."""
    index = security_index(found.network.layers, found.input_shape)
    checked = _checked(found, index, seed) if verify else None
    parts = [layer_text(index, found.network.names, checked or ())]
    parts += [stated(index), *advice(index, found.network.notes)]
    if checked is not None:
        parts.append(_verified(found, index, checked))
    tried = try_outs(found.network.layers, found.input_shape)
    parts.append(_try_out_text(found, index, tried))
    if figure is not None:
        write_leaks(index, found.name, figure)
    return _tables(found, index, checked or (), tried), parts


def _answers(model: nn.Module, shape: Shape) -> bool:
    """Check that a model takes images of `shape` at all."""
    try:
        with torch.no_grad():
            return isinstance(model.eval()(torch.zeros(2, *shape)), torch.Tensor)
    except Exception:  # noqa: BLE001  what a stranger's forward can raise has no common type
        return False


def model_of(text: str, input_shape: Shape, seed: int) -> nn.Module:
    """The network that `text` names; weights that it draws are drawn with `seed`.

    Raises `DataError` where there is none, `SettingsError` for a target that cannot be.
    """
    if text.endswith(".safetensors"):
        return load_target(Path(text))
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # a class draws its weights from the global generator
        if text.startswith("cnn3:"):
            return _built_in(text.removeprefix("cnn3:"), input_shape)
        if text.partition(":")[0] in TARGETS:
            plugin = read_plugin(TARGETS, text)
            made = built(TARGETS, plugin)
            facts = {"mean": [0.5] * input_shape[0], "std": [0.5] * input_shape[0]}
            names = [str(number) for number in range(_CLASSES)]
            size = (input_shape[1], input_shape[2])
            return TargetModel(made, names, **facts, size=size).eval()
        return model_of_file(text)


def model_of_file(text: str) -> nn.Module:
    """An object of the class that `text`, as model.py:Net, names. Runs the file's code.

    Raises `DataError` where file, class or object cannot be had.
    """
    path, _, name = text.rpartition(":")
    if Path(text).is_file():
        path, name = text, ""
    file = Path(path)
    if not path or not file.is_file():
        raise DataError(f"No file {path or text!r}. Give it as model.py:Net, or try cnn3:1.")
    with _run_as_script(file):
        module = _loaded(file)
        made = getattr(module, name, None) if name else None
        if made is None:
            there = ", ".join(_networks_in(module)) or "none"
            missing = f"{file} has no class {name!r}" if name else f"{file}: name a class of it"
            raise DataError(f"{missing}, as model.py:Net. Networks in it: {there}.")
        if not isinstance(made, type) or not issubclass(made, nn.Module):
            raise DataError(f"{name} of {file} is not a class of networks (torch.nn.Module).")
        try:
            return made()
        except (Exception, SystemExit) as error:  # as in _loaded
            raise DataError(
                f"{name} of {file} cannot be made without arguments: {_what(error)}."
            ) from error


@contextmanager
def _run_as_script(file: Path) -> Iterator[None]:
    """Its neighbours can be imported, as in `python model.py`."""
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _loaded(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"audited_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise DataError(f"{file} is not a Python file; its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        where = f"{error.filename}, line {error.lineno}"
        raise DataError(f"{where}: syntax error: {error.msg}.") from error
    except (Exception, SystemExit) as error:  # what a stranger's code can raise has no common type
        raise DataError(f"{file} cannot be run: {_what(error)}.") from error
    return module


def _networks_in(module: ModuleType) -> list[str]:
    """The classes that the file itself defines, not those that it imports."""
    return [
        name
        for name, one in vars(module).items()
        if isinstance(one, type)
        and issubclass(one, nn.Module)
        and one.__module__ == module.__name__
    ]


def _what(error: BaseException) -> str:
    said = f"{type(error).__name__}: {error}".rstrip(".")
    return f"it ends the program ({said})" if isinstance(error, SystemExit) else said


def shape_of(text: str) -> Shape:
    """(C, H, W) from 3x32x32; `SettingsError` for anything else."""
    parts = text.lower().replace("×", "x").split("x")
    good = len(parts) == 3 and all(part.isascii() and part.isdigit() for part in parts)
    shape = tuple(int(part) for part in parts) if good else ()
    if not shape or min(shape) < 1:
        raise SettingsError(
            f"--input is channels x height x width, each from 1, as 3x32x32; got {text!r}."
        )
    return shape


def layer_text(
    index: SecurityIndex, names: tuple[str, ...], checked: Sequence[CheckedLayer] = ()
) -> str:
    """c(M) layer by layer for a terminal.

    Args:
        checked: The same layers, where ranks were computed: then whether W has full column rank,
            too.
    """
    header = ["layer", "", "input", "n", "equations", "rank U", "hidden", "weight", "part of c(M)"]
    header += ["widens", "W has full rank"]
    full = {one.layer.place: one.full_rank for one in checked}
    rows = [
        [
            *(f"{layer.place}: {name}", described(layer), "×".join(map(str, layer.inputs))),
            *(f"{count:,}" for count in (layer.unknowns, layer.equations)),
            f"{layer.rank:,}" if layer.exact else f"≤ {layer.rank:,}",
            f"{layer.hidden:,}",
            f"{layer.weight:.3g}",
            signed(layer.contribution),
            *(_YES_OR_NO[one] for one in (layer.pulls_back, full.get(layer.place))),
        ]
        for layer, name in zip(index.layers, names, strict=True)
    ]
    end = ["fully connected", "", f"{index.features:,}", "", "", "", "none", "", "determined"]
    return text_table(header, [*rows, [*end, "", ""]])


def write_leaks(index: SecurityIndex, name: str, path: Path) -> None:
    """Write the picture of where a network leaks; `SettingsError` for an ending there is not."""
    write_picture(leak_figure(index, name), path, "--figure")


def _built_in(variant: str, input_shape: Shape) -> nn.Module:
    layers = {str(number): layers for number, layers in CNN3.items()}.get(variant)
    if layers is None:
        raise SettingsError(f"Built in are cnn3:1 to cnn3:4; got cnn3:{variant}.")
    return network_of(layers, input_shape)


def _tables(
    found: Audited,
    index: SecurityIndex,
    checked: Sequence[CheckedLayer],
    tried: Sequence[TryOut],
) -> dict[str, Any]:
    """Return a row for each layer, with what a check found of it, and a row for each change."""
    ranks = {
        one.layer.place: {"checked_rank": one.rank, "full_rank": one.full_rank} for one in checked
    }
    keys = (
        *("inputs", "unknowns", "equations", "rank", "exact", "hidden", "weight", "contribution"),
        "pulls_back",
    )
    layers = [
        {
            **{"place": one.place, "name": found.network.names[one.place - 1]},
            **{key: getattr(one, key) for key in keys},
            **ranks.get(one.place, {}),
        }
        for one in index.layers
    ]
    changes = [
        {key: getattr(one, key) for key in ("place", "change", "value", "hidden")} for one in tried
    ]
    return {"layers": layers, "changes": changes}


def _checked(found: Audited, index: SecurityIndex, seed: int) -> list[CheckedLayer]:
    if not index.layers:
        return []
    rng = torch.Generator().manual_seed(seed)
    leaked = leaked_layers(found.model, found.network.names, found.input_shape, rng)
    return checked_layers(index, leaked)


def _verified(found: Audited, index: SecurityIndex, checked: Sequence[CheckedLayer]) -> str:
    if not checked:
        return "Nothing to check: there is no convolution."
    lines = [_verdict(one, _named(found, one.layer.place)) for one in checked]
    value = signed(measured_index(index, checked).value)
    rest = ", in part in closed form" if any(one.rank is None for one in checked) else ""
    return "\n".join([f"Checked with weights and a gradient: c(M) = {value}{rest}", *lines])


def _verdict(one: CheckedLayer, name: str) -> str:
    if one.rank is None:
        return f"  {name}: {one.why[0]}"
    if one.agrees:
        return f"  {name}: rank {one.rank:,}, as in closed form"
    why = "; ".join(one.why) or "weights or gradient are not in general position, or only just"
    return f"  {name}: rank {one.rank:,}, closed form {one.layer.rank:,}: {why}"


def _try_out_text(found: Audited, index: SecurityIndex, tried: Sequence[TryOut]) -> str:
    rows = [
        [_named(found, one.place), one.change, signed(one.value), f"{one.hidden:,}"]
        for one in tried
    ]
    if len(rows) > _SHOWN:
        half = _SHOWN // 2
        rows = [*rows[:half], ["…", "", "", ""], *rows[-half:]]
    header = ["change in", "", f"c(M), now {signed(index.value)}", "hidden of the image"]
    return text_table(header, rows)


def _named(found: Audited, place: int) -> str:
    return f"{place}: {found.network.names[place - 1]}"


def client_view(model: nn.Module, shape: Shape) -> tuple[list[str], list[Sign]]:
    """Report what SPEAR gets, in a sentence where it applies, and signs that the model was changed.

    The client's pictures are built-in symbols, scaled to (C, H, W).

    Raises:
        SettingsError: Where the model gives no logits, (N, classes).
        DataError: Where it has no gradient.
    """
    seen, pictures = _received(model, shape)
    logits = seen(pictures[:1])
    if logits.ndim != 2:
        raise SettingsError(f"it gives {tuple(logits.shape)} of one picture, not (1, classes).")
    labels = torch.arange(len(pictures)) % logits.shape[1]
    found = signs(seen, pictures, labels)
    return [*_exact_batches(seen, pictures, labels)], found


def client_text(signs: Sequence[Sign]) -> str:
    """Signs as a table for a terminal, with what to do where one warns."""
    header = ["what a client could notice", "here", "ordinary", ""]
    rows = [[one.what, one.value, one.ordinary, "WARNING" if one.warns else ""] for one in signs]
    warned = [one.means for one in signs if one.warns]
    end = " ".join(["WARNING:", *warned, _ADVICE]) if warned else _ORDINARY
    return f"{text_table(header, rows)}\n\n{end}"


def _received(model: nn.Module, shape: Shape) -> tuple[TargetModel | Classifier, Tensor]:
    """A copy that attacks take, and pictures for it, (N, C, H, W)."""
    drawn = Symbols(test_per_class=1)("test").images[: max(_BATCHES)]
    if shape[0] != drawn.shape[1]:
        drawn = drawn.mean(1, keepdim=True).expand(-1, shape[0], -1, -1)
    scaled = F.interpolate(drawn, shape[1:], mode="bilinear", antialias=True).clamp(0, 1)
    if isinstance(model, TargetModel):
        return copy.deepcopy(model).eval(), scaled
    seen = Classifier(model, (0.0,), (1.0,), ALL)
    pictures = scaled.to(seen.mean)
    seen.keep_idle(seen(pictures[:1]))
    return seen, pictures


def _exact_batches(seen: TargetModel | Classifier, pictures: Tensor, labels: Tensor) -> list[str]:
    shape = (pictures.shape[1], pictures.shape[2], pictures.shape[3])
    try:
        first_layer(seen, shape)
    except SettingsError:
        return []
    good, tried = 0, list[str]()
    for batch in _BATCHES:
        tried.append(str(batch))
        if not _comes_back(seen, pictures[:batch], labels[:batch]):
            break
        good = batch
    reach = f"batches up to {good} come back exactly" if good else "no batch came back exactly"
    return [f"Its first layer is linear + ReLU: {reach} by SPEAR (tried: {', '.join(tried)})."]


def _comes_back(seen: TargetModel | Classifier, images: Tensor, labels: Tensor) -> bool:
    rngs = [torch.Generator().manual_seed(place) for place in range(len(images))]
    sharing = BatchGradient(batch=len(images), batch_norm="eval")
    leak = observe_round(seen, images, labels, sharing, NoDefence(), rngs)
    found = attack_updates(Spear(starts=_STARTS), [leak.observation], rngs=rngs)
    good = [one.image for one in found if isinstance(one, Reconstruction)]
    if len(good) < len(images):
        return False
    made = torch.stack(good)
    return bool(exact(images, made[assigned(made, images)]).all())
