"""What campaigns and their simulated people take on this machine, as shares of a plan."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from semsim.campaign.plan import Plan, PlannedTarget
from semsim.campaign.probe import Estimate, Load, outlook
from semsim.device import one_thread
from semsim.registry import Plugin
from semsim.reproduce.plans import Share
from semsim.reproduce.simulated_votes import jury_seconds

NOT_COUNTED = (
    "Not in it: scores. Trainings are probed without a defence and to their last epoch; those by "
    "DP-SGD, which take each image's own gradient, are two to three times as long."
)


def campaign_shares(
    part: str,
    plan: Plan,
    folder: Path,
    estimate: Estimate,
    targets: Sequence[PlannedTarget] | None = None,
) -> tuple[list[Share], int]:
    """Where the time of what a plan lacks below `folder` goes, and bytes of disk of all of it.

    part: what the plan is called. targets: those that are told here; all of the plan's without it.
    """
    shares = []
    for attack in dict.fromkeys(one.attack.name for one in plan.sets):
        own = tuple(one for one in plan.sets if one.attack.name == attack)
        found = outlook(replace(plan, sets=own, targets=()), folder, estimate)
        left = found.cells - found.cells_done
        shares.append(
            Share(part=part, what=f"attack {attack}", count=left, seconds=found.seconds or 0.0)
        )
    told = plan.targets if targets is None else tuple(targets)
    whole = outlook(replace(plan, targets=told), folder, estimate)
    seconds = (whole.seconds or 0.0) - sum(one.seconds for one in shares)
    shares.append(Share(part=part, what="train", count=whole.to_train, seconds=seconds))
    return [one for one in shares if one.count], whole.disk


def people_share(learned: Plugin, epochs: int, folder: Path, load: Load) -> list[Share]:
    """What simulated people take to learn that are not below `folder`, nothing where all are.

    learned, epochs: as of `simulated_people`. load: of the pictures.
    """
    with one_thread():
        missing = [one for one in jury_seconds(learned, epochs, folder, load) if one]
    share = Share(
        part="all", what="train simulated people", count=len(missing), seconds=sum(missing)
    )
    return [share] if missing else []
