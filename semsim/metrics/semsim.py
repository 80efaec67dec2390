"""SemSim: the distance of features that were trained on what people recognise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semsim.base.errors import WeightsError
from semsim.base.metric_spec import CALIBRATED, CONTROLS, MetricSpec, control_in, semsims
from semsim.metrics.base import Judge, Pairs, Resources, Scores
from semsim.metrics.inception import remembered
from semsim.metrics.recogniser import check_name

if TYPE_CHECKING:
    from semsim.metrics.network import SemSimModel


@dataclass(frozen=True, kw_only=True)
class SemSimDistance:
    """SemSim of a trained checkpoint, `checkpoints/<checkpoint>.safetensors`."""

    checkpoint: str

    def __post_init__(self) -> None:
        check_name(self.checkpoint)

    @property
    def spec(self) -> MetricSpec:
        control = control_in(self.checkpoint)
        named = self.checkpoint.removesuffix(f".{control}")
        title = f"SemSim ({named}{', ' + CONTROLS[control] if control else ''})"
        if control == CALIBRATED:
            title = f"{CONTROLS[control].capitalize()} ({named})"
        return MetricSpec(
            name=f"semsim:{self.checkpoint}",
            title=title,
            higher_means_more_leakage=False,
            per_image=True,
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        path = resources.checkpoints / f"{self.checkpoint}.safetensors"
        if not path.is_file():
            raise WeightsError(
                f"No SemSim called {self.checkpoint!r}: {path} is missing. There are: "
                f"{', '.join(semsims(resources.checkpoints)) or 'none'}. Train one on the "
                "Train SemSim page, or copy its file there."
            )
        return (path,)

    def prepare(self, resources: Resources) -> Judge:
        from semsim.metrics.network import load_semsim

        return semsim_judge(load_semsim(self.files(resources)[0]).to(resources.device))


def semsim_judge(model: SemSimModel) -> Judge:
    """A judge by the distance of a SemSim, which remembers features of the originals."""
    from semsim.metrics.network import semsim_distance, semsim_features

    known = remembered(lambda images: semsim_features(model, images))  # most sets share originals

    def judge(pairs: Pairs) -> Scores:
        found = semsim_distance(model, pairs.originals, pairs.reconstructions, of_originals=known)
        return Scores(values=found.numpy().astype(np.float64))

    return judge
