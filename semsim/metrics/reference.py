"""Any metric with the attacked image, not the clean original, as what is compared with."""

from dataclasses import dataclass, replace
from pathlib import Path

from semsim.base.metric_spec import MetricSpec
from semsim.metrics.base import Judge, Metric, Resources

SUFFIX = "@attacked"


@dataclass(frozen=True, kw_only=True)
class AgainstAttacked:
    """`metric`, whose pairs hold the attacked images where the originals would be.

    Who makes the pairs chooses them by `MetricSpec.reference`.
    """

    metric: Metric

    @property
    def spec(self) -> MetricSpec:
        inner = self.metric.spec
        return replace(
            inner,
            name=inner.name + SUFFIX,
            title=f"{inner.title}, attacked image as reference",
            reference="attacked",
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return self.metric.files(resources)

    def prepare(self, resources: Resources) -> Judge:
        return self.metric.prepare(resources)
