"""Model and original of each reconstruction, and means over both."""

import re
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pandas as pd

from semsim.base.columns import ARCHITECTURE, ATTACKER, MODEL_KEY, TARGET_COLUMNS
from semsim.base.stats.evidence import model_key, short_labels
from semsim.base.stats.intervals import left_out

_NAME = re.compile(r"([^_·| :]*(?::[^·| ]*)?)[_·| ]*(.*)")  # an architecture and what follows


@dataclass(frozen=True, kw_only=True)
class Layout:
    """R reconstructions of O originals by M models.

    Attributes:
        models: M rows in order of their key: dataset, attack, model, label, model_key, backbone
            ("" where nothing states it) , `TARGET_COLUMNS` and `ATTACKER`, missing where not
            known.
        model, original: (R,) int, the row of `models` and the number of the original.
        dataset: (O,) int, the data set of each original; an original is a (dataset, image_id).
    """

    models: pd.DataFrame
    model: np.ndarray
    original: np.ndarray
    dataset: np.ndarray

    @property
    def n_models(self) -> int:
        return len(self.models)

    @property
    def n_originals(self) -> int:
        return len(self.dataset)

    @cached_property
    def left_out(self) -> np.ndarray:
        """(1 + G, O): `intervals.left_out` of the originals."""
        return left_out(self.n_originals)

    def cells(self, values: np.ndarray) -> np.ndarray:
        """(O, M): the sum of `values`, (R,), over the images of an original by a model."""
        place = self.original * self.n_models + self.model
        size = self.n_originals * self.n_models
        return np.bincount(place, values, size).reshape(self.n_originals, self.n_models)

    def table(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of finite `values`, (R,), by model and original: (M, O), NaN without."""
        known = np.isfinite(values)
        sums = self.cells(np.where(known, values, 0.0))
        counts = self.cells(known.astype(float))
        return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0).T

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """(M,) int: how many of the images `chosen`, (R,) bool, each model has."""
        return np.bincount(self.model[chosen], minlength=self.n_models)

    def units(self, chosen: np.ndarray) -> np.ndarray:
        """(M,) int: of how many originals the images `chosen`, (R,) bool, of each model are."""
        return np.asarray((self.cells(chosen.astype(float)) > 0).sum(axis=0))


def layout_of(images: pd.DataFrame) -> Layout:
    """The layout of a table of images as `Evidence.images` is."""
    models = images[MODEL_KEY].drop_duplicates().sort_values(MODEL_KEY, ignore_index=True)
    labels = short_labels(images)
    models["model_key"] = [model_key(row) for _, row in models.iterrows()]
    models["label"] = models["model_key"].map(labels)
    known = images.drop_duplicates(MODEL_KEY).sort_values(MODEL_KEY, ignore_index=True)
    models["backbone"] = _backbones(models, known)
    for name in (*TARGET_COLUMNS, ATTACKER):
        models[name] = known.get(name, np.nan)
    by_original = images.groupby(["dataset", "image_id"], sort=True)
    original = by_original.ngroup().to_numpy()
    datasets = by_original.size().reset_index()["dataset"]
    return Layout(
        models=models,
        model=images.groupby(MODEL_KEY, sort=True).ngroup().to_numpy(),
        original=original,
        dataset=pd.factorize(datasets)[0],
    )


def _backbones(models: pd.DataFrame, known: pd.DataFrame) -> list[str]:
    """Return the network of each model: as its source states it, or as a campaign names it."""
    stated = known.get(ARCHITECTURE, pd.Series("", known.index)).fillna("").astype(str)
    by_name = [
        name if "/" in model else ""
        for model, (name, _) in zip(models["model"], named_in(models), strict=True)
    ]
    return [said or name for said, name in zip(stated, by_name, strict=True)]


def named_in(models: pd.DataFrame) -> list[tuple[str, str]]:
    """`architecture_and_strategy` of each row of a table with the columns `MODEL_KEY`."""
    rows = models[["model", "dataset", "attack"]].astype(str).itertuples(index=False)
    return [architecture_and_strategy(*row) for row in rows]


@cache  # of a few models there are many rows
def architecture_and_strategy(model: str, dataset: str, attack: str) -> tuple[str, str]:
    """Parse a model's name into its network and its training or defence; "" for nothing.

    A campaign's name has them between slashes, first its data set where there are several, and
    behind them how it was trained, what was shared and the attack, which change neither. Without a
    slash they are parted by the first of _ · | and space that is in no setting, such as
    batch_norm=true.
    """
    parts = model.split("/")
    parts = parts[:-1] if len(parts) > 1 and _says(parts[-1], attack) else parts
    begins = parts[:-1] if "=" in parts[0] else parts[:1]  # a folder's path has slashes of its own
    named = [place for place, part in enumerate(begins, 1) if _says(part, dataset)]
    parts = parts[named[0] :] if named and len(parts) > 1 else parts
    first, *rest = parts
    if not rest and (found := _NAME.fullmatch(first)):
        first, rest = found[1], [found[2]]
    return first or model, "".join(rest[:1])


def _says(part: str, name: str) -> bool:
    bare, wanted = (re.split("[:,]", text, maxsplit=1)[0] for text in (part, name))
    return bare == wanted


def model_means(layout: Layout, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B, M): each model's mean of `values` when originals count as `weights` says.

    Args:
        values: (R,), NaN where there is none.
        weights: (B, O). Infinite values are kept out of the mean, except of a model that has no
            others and all of one sign: its mean is infinite. NaN where a model has no value at all.
    """
    finite = np.isfinite(values)
    sums = weights @ layout.cells(np.where(finite, values, 0.0))
    counts = weights @ layout.cells(finite.astype(float))
    means = np.divide(sums, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
    for sign in (np.inf, -np.inf):
        same = layout.counts(values == sign)
        only = (same > 0) & (same == layout.counts(~np.isnan(values)))
        means[:, only] = sign
    return _settled(means)


def _settled(means: np.ndarray) -> np.ndarray:
    """Rounded to 40 bits, some 12 digits: equal means must tie, in whatever order they were summed.

    Two models whose images got the same votes would else differ in the last bit and be ranked.
    """
    fraction, exponent = np.frexp(means)
    return np.ldexp(np.round(np.ldexp(fraction, 40)), exponent - 40)
