"""A campaign's own folder below <data>/runs: what it is, and how far its pieces are right now.

<data>/runs/<campaign>/campaign.json         the campaign, as `from_record` reads it
<data>/runs/<campaign>/live.json             shares done of what is being computed, by key
<data>/runs/<campaign>/<target>__<attack>/   a finished reconstruction set
"""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semsim.campaign.plan import Campaign
from semsim.errors import JobError, SettingsError
from semsim.jobs.folders import read_json
from semsim.jobs.orders import from_record, to_record
from semsim.kept.whole import write_json

CAMPAIGN = "campaign.json"
_LIVE = "live.json"
_PAUSE = 0.5  # seconds between two writings of live.json


class RunFolder:
    """The folder of the campaign called `name`."""

    def __init__(self, data: Path, name: str) -> None:
        self.path = Path(data) / "runs" / name
        self._told = 0.0

    def claim(self, campaign: Campaign) -> None:
        """Keep what the campaign is; `SettingsError` where another one has the name."""
        path = self.path / CAMPAIGN
        if path.exists() and from_record(Campaign, read_json(path)) != campaign:
            raise SettingsError(
                f"Another campaign is called {campaign.name!r}. Choose another name; what it has "
                "in common with this one is not computed again."
            )
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(path, to_record(campaign))

    def tell(self, shares: Mapping[str, float]) -> None:
        """Write how much of each piece under way is done, 0 to 1, at most twice a second."""
        now = time.monotonic()
        if now - self._told >= _PAUSE:
            write_json(self.path / _LIVE, {"shares": dict(shares)})
            self._told = now

    def quiet(self) -> None:
        """Nothing is under way any more."""
        (self.path / _LIVE).unlink(missing_ok=True)

    def shares(self) -> dict[str, float]:
        """What `tell` wrote last; empty where nothing is under way."""
        with contextlib.suppress(JobError):  # removed since
            found: dict[str, Any] = read_json(self.path / _LIVE)
            return {key: float(share) for key, share in found.get("shares", {}).items()}
        return {}


def campaigns(data: Path) -> list[str]:
    """The names of the campaigns that have begun below `data`, in order."""
    return sorted(path.parent.name for path in (Path(data) / "runs").glob(f"*/{CAMPAIGN}"))


def read_campaign(data: Path, name: str) -> Campaign:
    """The campaign called `name` below `data`; `JobError` where there is none."""
    if name not in campaigns(data):
        known = ", ".join(campaigns(data)) or "none"
        raise JobError(f"There is no campaign {name!r} below {data}. Campaigns: {known}.")
    return from_record(Campaign, read_json(RunFolder(data, name).path / CAMPAIGN))
