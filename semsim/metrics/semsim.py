"""SemSim: the distance of features that were trained on what people recognise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semsim.errors import WeightsError
from semsim.metrics.base import Judge, MetricSpec, Pairs, Resources, Scores, check_pairs
from semsim.metrics.inception import remembered
from semsim.metrics.provenance import CONTROLS, control_in
from semsim.metrics.recogniser import check_name

if TYPE_CHECKING:
    from torch import Tensor


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
        return MetricSpec(
            name=f"semsim:{self.checkpoint}",
            title=f"SemSim ({named}{', ' + CONTROLS[control] if control else ''})",
            higher_means_more_leakage=False,
            per_image=True,
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        path = resources.checkpoints / f"{self.checkpoint}.safetensors"
        if not path.is_file():
            raise WeightsError(
                f"No SemSim called {self.checkpoint!r}: {path} is missing. Train one on the "
                "Train SemSim page, or copy its file there."
            )
        return (path,)

    def prepare(self, resources: Resources) -> Judge:
        import torch

        from semsim.metrics.network import load_semsim, semsim_features

        model = load_semsim(self.files(resources)[0]).to(resources.device)

        def features(images: Tensor) -> np.ndarray:
            return semsim_features(model, images).numpy()

        of_originals = remembered(features)  # which most sets of a study share

        def judge(pairs: Pairs) -> Scores:
            check_pairs(
                pairs.originals,
                pairs.reconstructions,
                dtypes=("float32", "float64"),
                sizes_may_differ=True,
            )
            apart = of_originals(pairs.originals) - features(pairs.reconstructions)
            distances = torch.linalg.vector_norm(torch.from_numpy(apart), dim=1)
            return Scores(values=distances.numpy().astype(np.float64))

        return judge
