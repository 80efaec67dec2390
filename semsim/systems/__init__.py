"""Systems of sister papers, each from its settings to its page: audit, split, federated.

Others know of them what `SYSTEMS` says; by it the command line and the side bar show each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from semsim.base.jobs.terminal import Kind


@dataclass(frozen=True, kw_only=True)
class System:
    """A system by the names of its modules, which are imported where they are needed.

    name: of its folder, of its command and of the address of its page. title: of that page. about:
    its line in the list of commands. group: whether `command` has an `app`, a group of commands,
    and not one function called as the system is. kinds: of jobs that carry out its orders.
    """

    name: str
    title: str
    about: str
    group: bool = True
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    def module(self, part: str) -> str:
        """Return the dotted name of its `command` or its `page`."""
        return f"{__name__}.{self.name}.{part}"

    @property
    def command(self) -> tuple[str, str, str]:
        """The module of its command, the name of that there, and the line about it."""
        return self.module("command"), "app" if self.group else self.name, self.about


# In the order of the side bar.
SYSTEMS: Mapping[str, System] = {
    one.name: one
    for one in (
        System(
            name="audit",
            title="Audit",
            about=(
                "Print c(M) of a network layer by layer, what it means, and what small changes "
                "would do."
            ),
            group=False,
        ),
        System(
            name="split",
            title="Split inference",
            about="Split inference: defences and model inversion.",
            kinds={
                "split": Kind(
                    *("semsim.systems.split.split_job", "SplitJob", "do_split"),
                    *("semsim.systems.split.command", "outcome_text", "outcome_rows"),
                    writes=("place.data",),
                )
            },
        ),
        System(
            name="federated",
            title="Federated",
            about=(
                "Federated learning with a masked model, compared in one process or between "
                "machines."
            ),
            kinds={
                "federated": Kind(
                    *("semsim.systems.federated.comparison_job", "FederatedJob", "do_comparison"),
                    *("semsim.systems.federated.command", "told", "rows_of"),
                    writes=("out",),
                )
            },
        ),
    )
}
