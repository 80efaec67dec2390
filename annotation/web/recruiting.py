"""People sent by a recruiting service: what the address they come by says about them."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

# Parameter of an address → whether it names the person. Prolific, Mechanical Turk, and others.
_PARAMETERS = {
    "PROLIFIC_PID": True,
    "STUDY_ID": False,
    "SESSION_ID": False,
    "workerId": True,
    "assignmentId": False,
    "hitId": False,
    "participant": True,
    "participantId": True,
}
# Of {{%ID%}}, ${ID}, [ID], <ID>, %ID%, &lt;ID&gt;: none of them is in an id.
_UNFILLED = re.compile(r"[{}\[\]<>$%&;]")
_WHOSE = "your|the|insert|enter|prolific|mturk|turk|sona|worker|participant|subject|user"
# What stands for an id, letters and digits alone; "" where there are none.
_NO_ID = re.compile(
    f"(({_WHOSE}|external|study|survey|session|assignment|hit|a)*(p?id|code)|notavailable"
    "|participant|undefined|unknown|null|none|nan|nil|na)?(here|notavailable)?"
)
LONGEST = 80  # characters of an id; services use about 30


class Recruit(NamedTuple):
    """Somebody sent by a service: the pseudonym it gave them, and all ids by parameter."""

    pseudonym: str
    ids: dict[str, str]


def placeholder_in(parameters: Mapping[str, str]) -> str:
    """The parameter that a service was to fill in and did not, with what is there; "" for none.

    Everybody who comes by such a link would be one person.
    """
    for name in (name for name in _PARAMETERS if name in parameters):
        value = parameters[name].strip()
        bare = re.sub(r"[\W_]", "", value).casefold()
        if _UNFILLED.search(value) or _NO_ID.fullmatch(bare):
            return f"{name}={value}"
    return ""


def recruit_of(parameters: Mapping[str, str]) -> Recruit | None:
    """Who a service sent with these parameters; None where they name nobody.

    Anything else in the address, and ids of more than 80 characters, are left out.
    """
    ids = {
        name: parameters[name].strip()
        for name in _PARAMETERS
        if 0 < len(parameters.get(name, "").strip()) <= LONGEST
    }
    names = [value for name, value in ids.items() if _PARAMETERS[name]]
    return Recruit(names[0], ids) if names else None


def code_address(url: str, code: str) -> str:
    """Where somebody goes on to at the end: `url` with {code} in it replaced by `code`."""
    return url.replace("{code}", quote(code, safe=""))
