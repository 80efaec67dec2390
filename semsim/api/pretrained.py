"""SemSim as a module that loads from a folder, a file or a model hub, and as a loss."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import torch
from huggingface_hub import ModelCard, ModelCardData, PyTorchModelHubMixin, hf_hub_download
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError
from safetensors.torch import load_file
from torch import Tensor, nn

from semsim.base.errors import SettingsError, WeightsError
from semsim.base.jobs.orders import to_record
from semsim.base.metric_spec import semsims
from semsim.base.storage.places import BROUGHT, CHECKPOINTS
from semsim.base.storage.records import guarded, read_record, write_record
from semsim.learning.card import FORMAT as CARD_FORMAT
from semsim.learning.card import card_markdown, read_card
from semsim.metrics.network import (
    ModelSettings,
    SemSimModel,
    check_usable,
    checked_judged,
    load_semsim,
    save_semsim,
)
from semsim.metrics.provenance import Provenance, read_config, read_training
from semsim.metrics.recogniser import check_name
from semsim.weights import read_facts, write_tensors

FORMAT = "semsim-pretrained/1"  # of a folder that `save_pretrained` writes: `WEIGHTS` says it
WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "card.json"
HUB = "hub:"
_ENDINGS = ("", ".safetensors")
_TAGS = ["image-similarity", "privacy"]

Reduction = Literal["mean", "sum", "none"]


class SemSim(nn.Module, PyTorchModelHubMixin, library_name="semsim", tags=_TAGS):
    """The distance of an original and its reconstruction that was trained on what people recognise.

    Sun et al. 2023, Fig. 4: ‖f(x) − f(x̂)‖₂. Smaller means more leakage. `from_pretrained` loads a
    trained one; a fresh one has random weights and tells nothing.

    Attributes:
        settings: What the network is made from.
        mean: Of the images it learned from, one value a channel.
        std: As `mean`.
        name: What tables call it, as `semsim:<name>`.
        origin: Where it comes from, the fields of `semsim.metrics.provenance.Provenance`. It is
            frozen and stays in eval mode; gradients reach the images.

    >>> import torch, semsim
    >>> metric = semsim.SemSim.from_pretrained("checkpoints/demo")
    >>> originals = torch.rand(2, 3, 32, 32)
    >>> noisy = (originals + 0.3 * torch.rand(2, 3, 32, 32)).clamp(0, 1).requires_grad_()
    >>> metric(originals, noisy).sum().backward()
    >>> noisy.grad.shape
    torch.Size([2, 3, 32, 32])
    """

    def __init__(
        self,
        settings: ModelSettings | None = None,
        mean: Sequence[float] = (0.5, 0.5, 0.5),
        std: Sequence[float] = (0.5, 0.5, 0.5),
        name: str = "untrained",
        origin: dict | None = None,
    ) -> None:
        super().__init__()
        check_name(name)
        self.name = name
        self.origin = origin
        self.card: Mapping[str, Any] | None = None
        self.network = SemSimModel(settings or ModelSettings(), mean=mean, std=std)
        self.requires_grad_(False)
        self.eval()

    def forward(self, originals: Tensor, reconstructions: Tensor) -> Tensor:
        """The distance of each pair, (N,), 0 or more, on the device of the module; differentiable.

        Args:
            originals: (N, 3, H, W) floats in [0, 1]; H and W may differ between
                the two.
            reconstructions: As `originals`.

        Raises:
            DataError: For anything else; a traced or exported one checks nothing.

        >>> import torch, semsim
        >>> metric = semsim.SemSim.from_pretrained("checkpoints/demo")
        >>> images = torch.rand(2, 3, 32, 32)
        >>> metric(images, images)
        tensor([0., 0.])
        """
        if not torch.compiler.is_compiling():
            originals, reconstructions = checked_judged(originals, reconstructions)
        first, second = (self._features(images) for images in (originals, reconstructions))
        return torch.linalg.vector_norm(first - second, dim=1)

    def train(self, mode: bool = True) -> Self:
        """Stay in eval mode, whatever the model does that this is a part of."""
        del mode
        return super().train(False)

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls, pretrained_model_name_or_path: str | Path, **options: Any
    ) -> Self:
        """Return the SemSim in a folder, in a file as `learn` writes it, or in a repository.

        Args:
            pretrained_model_name_or_path: A folder of `save_pretrained`; a checkpoint with or
                without its ending `.safetensors`, "checkpoints/demo" is there anywhere; or
                `hub:<owner>/<name>`, for which alone the hub is asked, through huggingface_hub,
                which knows the options `revision`, `token`, `cache_dir`, `local_files_only` and
                `force_download`.

        Raises:
            WeightsError: Where there is none that can be used, with the names there are.

        >>> import semsim
        >>> semsim.SemSim.from_pretrained("checkpoints/demo").name
        'demo'
        """
        given = str(pretrained_model_name_or_path)
        on_hub = given.startswith(HUB)
        if not on_hub and not Path(given).is_dir():
            return cls.from_checkpoint(_checkpoint(given))
        if not on_hub and not (Path(given) / CONFIG).is_file():
            raise WeightsError(f"{given} is a folder without {CONFIG}; it holds no SemSim.")
        try:
            return super().from_pretrained(given.removeprefix(HUB), **options)
        except (HfHubHTTPError, HFValidationError, OSError, ValueError, TypeError) as error:
            where = "the hub has none by this name or was not reached" if on_hub else "it is broken"
            raise WeightsError(
                f"No SemSim could be loaded from {given!r}: {where} ({error})."
            ) from error

    @classmethod
    def from_checkpoint(cls, path: Path) -> Self:
        """The SemSim in one file, `checkpoints/<name>.safetensors`.

        Raises `WeightsError` where the file is missing, broken or of another kind.

        >>> import semsim
        >>> from pathlib import Path
        >>> semsim.SemSim.from_checkpoint(Path("checkpoints/demo.safetensors")).name
        'demo'
        """
        network, config = load_semsim(path), read_config(path)
        made = cls(
            settings=network.settings,
            mean=config["mean"],
            std=config["std"],
            name=path.stem,
            origin=to_record(read_training(path)),
        )
        made.network.load_state_dict(network.state_dict(), strict=True)
        made.card = read_card(path)
        return made

    def save_checkpoint(self, path: Path | str) -> None:
        """Write one file that the command line and the pages know as `semsim:<stem of path>`.

        Raises `WeightsError` where nothing is known of where it comes from.

        >>> import semsim, tempfile
        >>> metric = semsim.SemSim.from_pretrained("checkpoints/demo")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     metric.save_checkpoint(f"{folder}/mine.safetensors")
        ...     semsim.SemSim.from_pretrained(f"{folder}/mine").name
        'mine'
        """
        if self.origin is None:
            raise WeightsError(
                "This SemSim does not say how it was trained, so it is no checkpoint."
            )
        save_semsim(self.network, Path(path), Provenance(**self.origin))

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """The README.md of `save_pretrained`: licence, data, and metrics with their intervals."""
        del args, kwargs
        if self.card is not None:
            return ModelCard(card_markdown(self.card))
        front = ModelCardData(
            license="unknown", library_name="semsim", tags=_TAGS, model_name=self.name
        )
        origin = self.origin or {}
        study = origin.get("study") or "not stated"
        votes = "simulated" if origin.get("simulated") else "not stated"
        return ModelCard(
            f"---\n{front.to_yaml()}\n---\n# SemSim {self.name}\n\nA distance between an original "
            "and a reconstruction; smaller means that people recognise more. It came without a "
            f"card, so what it was judged by is not stated.\n\n- Study: {study}\n- Votes: {votes}\n"
            f"- Originals it learned from: {origin.get('n_originals', 'not stated')}\n"
        )

    def _features(self, images: Tensor) -> Tensor:
        mean = self.network.mean
        found: Tensor = self.network(images.to(device=mean.device, dtype=mean.dtype))
        return found

    def _save_pretrained(self, save_directory: Path) -> None:
        write_tensors(save_directory / WEIGHTS, self.network.state_dict(), FORMAT, {})
        if self.card is not None:
            write_record(save_directory / CARD, CARD_FORMAT, self.card)

    @classmethod
    def _from_pretrained(  # type: ignore[override]
        cls,
        *,
        model_id: str,
        revision: str | None,
        cache_dir: str | Path | None,
        force_download: bool,
        local_files_only: bool,
        token: str | bool | None,
        **settings: Any,
    ) -> Self:
        def file(name: str) -> Path:
            if Path(model_id).is_dir():
                return Path(model_id) / name
            found = hf_hub_download(
                model_id,
                name,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
            )
            return Path(found)

        weights = file(WEIGHTS)
        with guarded(weights, WeightsError, "holds no SemSim that can be used: {}"):
            made = cls(**settings)
            read_facts(weights, FORMAT)
            made.network.load_state_dict(load_file(weights), strict=True)
        check_usable(made.network, model_id)
        made.card = _card_in(file)
        return made


class SemSimLoss(nn.Module):
    """The distance by a trained SemSim, to be made small, as by what should be recognised.

    A defence that should not leak subtracts it.

    Attributes:
        metric: A SemSim, or what `SemSim.from_pretrained` loads.
        reduction: "mean" or "sum" over images, or "none". The SemSim is frozen: it gives no
            parameters to an optimiser.

    >>> import torch, semsim
    >>> loss = semsim.SemSimLoss("checkpoints/demo")
    >>> picture = torch.full((1, 3, 32, 32), 0.5, requires_grad=True)
    >>> loss(picture, torch.rand(1, 3, 32, 32)).backward()
    >>> picture.grad.shape
    torch.Size([1, 3, 32, 32])
    """

    def __init__(self, metric: SemSim | str, reduction: Reduction = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise SettingsError(f"reduction must be mean, sum or none; got {reduction!r}.")
        self.metric = SemSim.from_pretrained(metric) if isinstance(metric, str) else metric
        self.reduction = reduction

    def forward(self, reconstructions: Tensor, originals: Tensor) -> Tensor:
        """A number, or (N,) with reduction "none"; 0 or more, differentiable in both.

        Args:
            reconstructions: (N, 3, H, W) floats in [0, 1], as after a sigmoid.
            originals: As `reconstructions`.

        Raises:
            DataError: For anything else.
        """
        distances: Tensor = self.metric(originals, reconstructions)
        if self.reduction == "none":
            return distances
        return distances.mean() if self.reduction == "mean" else distances.sum()


def _checkpoint(given: str) -> Path:
    """Return the file that is meant: here, in the folder of weights, or with the product."""
    places = (given, CHECKPOINTS.parent / given, CHECKPOINTS / given, BROUGHT / given)
    named = (Path(f"{place}{end}") for place in places for end in _ENDINGS)
    if file := next((file for file in named if file.is_file()), None):
        return file
    there = dict.fromkeys((*semsims(CHECKPOINTS), *semsims(BROUGHT / "checkpoints")))
    raise WeightsError(
        f"No SemSim is at {given!r}: neither here nor in {CHECKPOINTS}. There are: "
        f"{', '.join(f'checkpoints/{name}' for name in there) or 'none'}. The hub is asked for "
        f"{HUB}OWNER/NAME only."
    )


def _card_in(file: Any) -> Mapping[str, Any] | None:
    try:
        path = file(CARD)
    except EntryNotFoundError:
        return None
    return read_record(path, CARD_FORMAT, WeightsError) if path.exists() else None
