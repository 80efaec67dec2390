"""Systems of sister papers, each from its settings to its page: audit, split, federated.

Others know of them what `SYSTEMS` says; by it the command line and the side bar show each.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from semsim.base.jobs.terminal import JobKind


@dataclass(frozen=True)
class System:
    """A system by the names of its modules, which are imported where they are needed.

    Attributes:
        name: Of its folder, its command, its jobs, and the address of its page.
        title: Of that page.
        about: Its line in the list of commands.
        job: How its jobs are carried out, of one that has some.
        group: Whether its command is a group of commands, `app`, and not a function of its name.
    """

    name: str
    title: str
    about: str
    job: JobKind | None = None
    group: bool = True

    def module(self, part: str) -> str:
        """Return the dotted name of its `command` or its `page`."""
        return f"{__name__}.{self.name}.{part}"


_AUDIT = System(
    "audit",
    "Audit",
    "Print c(M) of a network layer by layer, its meaning, and the effect of small changes.",
    group=False,
)
_SPLIT = System(
    "split",
    "Split inference",
    "Split inference: defences and model inversion.",
    JobKind(
        *("semsim.systems.split.plan", "SplitJob", "semsim.systems.split.run:do_split"),
        *("semsim.systems.split.command", "outcome_text", "outcome_parts"),
        writes=("place.data",),
    ),
)
_FEDERATED = System(
    "federated",
    "Federated",
    "Federated learning with a masked model, compared in one process or between machines.",
    JobKind(
        *("semsim.systems.federated.settings", "FederatedJob"),
        "semsim.systems.federated.comparison:do_comparison",
        *("semsim.systems.federated.command", "told", "parts_of"),
        writes=("out",),
    ),
)
# In the order of the side bar.
SYSTEMS: Mapping[str, System] = {one.name: one for one in (_AUDIT, _SPLIT, _FEDERATED)}
# The kinds of job that carry out their orders.
JOBS: Mapping[str, JobKind] = {
    name: one.job for name, one in SYSTEMS.items() if one.job is not None
}
