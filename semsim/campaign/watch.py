"""A campaign's own folder below <data>/runs: what it is, and how far its pieces are right now.

<data>/runs/<campaign>/campaign.json         the campaign, as `from_record` reads it
<data>/runs/<campaign>/live.json             shares done of what is being computed, by key
<data>/runs/<campaign>/seen.json             steps of one picture that is being attacked
<data>/runs/<campaign>/<target>__<attack>/   a finished reconstruction set
"""

import base64
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from semsim.base.errors import JobError, SettingsError
from semsim.base.jobs.folders import read_json
from semsim.base.jobs.orders import from_record, to_record
from semsim.base.storage.atomic import write_json
from semsim.base.storage.records import guarded, read_record, write_record
from semsim.campaign.plan import Campaign
from semsim.grid.previews import STEPS, Strip

CAMPAIGN, FORMAT = "campaign.json", "semsim-campaign/1"
_LIVE, _SEEN = "live.json", "seen.json"
_PAUSE = 0.5  # seconds between two writings of live.json

_PNG, _END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
_LARGEST = 64 * 1024  # bytes of one picture: noise of `sights.SIDE` pixels a side has a fifth


@dataclass(frozen=True, kw_only=True)
class WatchedImage:
    """An image that is being attacked.

    Shares are 0 to 1, growing; `sights.STEPS` of them at most.

    Attributes:
        key: Of its cell.
        steps: Share done, and a PNG file, each.
    """

    key: str
    steps: tuple[tuple[float, bytes], ...]


class RunFolder:
    """The folder of the campaign called `name`."""

    def __init__(self, data: Path, name: str) -> None:
        self.path = Path(data) / "runs" / name
        self._told = 0.0

    def claim(self, campaign: Campaign) -> None:
        """Keep what the campaign is; `SettingsError` where another one has the name."""
        path = self.path / CAMPAIGN
        if path.exists() and campaign_in(path) != campaign:
            raise SettingsError(
                f"Another campaign is called {campaign.name!r}. Choose another name; what it has "
                "in common with this one is not computed again."
            )
        self.path.mkdir(parents=True, exist_ok=True)
        write_record(path, FORMAT, to_record(campaign))

    def tell(self, shares: Mapping[str, float]) -> None:
        """Write how much of each piece under way is done, 0 to 1, at most twice a second."""
        now = time.monotonic()
        if now - self._told >= _PAUSE:
            write_json(self.path / _LIVE, {"shares": dict(shares)})
            self._told = now

    def show(self, key: str, strip: Strip) -> None:
        """Write what is seen of the cell called `key`, in the place of what was seen before."""
        steps = [[one.share, base64.b64encode(one.png).decode()] for one in strip]
        write_json(self.path / _SEEN, {"key": key, "steps": steps})

    def hide(self) -> None:
        """Nothing is seen any more."""
        (self.path / _SEEN).unlink(missing_ok=True)

    def quiet(self) -> None:
        """Nothing is under way any more."""
        (self.path / _LIVE).unlink(missing_ok=True)
        self.hide()

    def seen(self) -> WatchedImage | None:
        """Return what `show` wrote last; None where nothing is seen, or the file lacks it."""
        with contextlib.suppress(JobError), guarded(self.path / _SEEN, JobError):
            found = read_json(self.path / _SEEN)
            steps = [(float(share), _png(text)) for share, text in found["steps"]]
            shares = [share for share, _ in steps]
            if 0 < len(steps) <= STEPS and all(0 <= share <= 1 for share in shares):
                return WatchedImage(key=str(found["key"]), steps=tuple(steps))
        return None

    def shares(self) -> dict[str, float]:
        """Return what `tell` wrote last; empty where nothing is under way."""
        with contextlib.suppress(JobError):  # removed since
            shares = read_json(self.path / _LIVE)["shares"]
            return {key: float(share) for key, share in shares.items()}
        return {}


def _png(text: str) -> bytes:
    content = base64.b64decode(text, validate=True)
    whole = content.startswith(_PNG) and content.endswith(_END)
    if not whole or len(content) > _LARGEST:
        raise ValueError("no small PNG file")
    return content


def campaigns(data: Path) -> list[str]:
    """The names of the campaigns that have begun below `data`, in order."""
    return sorted(path.parent.name for path in (Path(data) / "runs").glob(f"*/{CAMPAIGN}"))


def read_campaign(data: Path, name: str) -> Campaign:
    """The campaign called `name` below `data`; `JobError` where there is none."""
    if name not in campaigns(data):
        known = ", ".join(campaigns(data)) or "none"
        raise JobError(f"There is no campaign {name!r} below {data}. Campaigns: {known}.")
    return campaign_in(RunFolder(data, name).path / CAMPAIGN)


def campaign_in(path: Path, *, by_hand: bool = False) -> Campaign:
    """The campaign that a file `CAMPAIGN` tells; `JobError` where it tells none.

    Args:
        by_hand: Whether people wrote it, who may leave out its name and what has its default.
    """
    unnamed = {"name": ""} if by_hand else {}
    return from_record(Campaign, unnamed | read_record(path, FORMAT, JobError), by_hand=by_hand)
