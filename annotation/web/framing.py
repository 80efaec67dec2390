"""Pages inside a page of another site: which sites may, and cookies that arrive there."""

import os
from fnmatch import fnmatchcase

from starlette.requests import Request
from starlette.responses import Response

from annotation.web.root_path import rooted

FRAMED_BY = "SEMSIM_FRAMED_BY"  # sites that may frame every page of this server
ANCESTORS = "frame-ancestors"
POLICY = "Content-Security-Policy"


def framers(own: str) -> str:
    """Return the sites that may frame every page of the server, and those of `own`."""
    return f"{os.environ.get(FRAMED_BY, '')} {own}".strip()


def stranger(request: Request, own: str) -> str:
    """Return the site whose page has this one in a frame and may not; "" where none is known."""
    sent = request.headers
    if sent.get("sec-fetch-dest") != "iframe" or sent.get("sec-fetch-site") != "cross-site":
        return ""
    site = "/".join(sent.get("referer", "").split("/")[:3])
    return "" if any(fnmatchcase(site, one) for one in framers(own).split()) else site


def ancestors(policy: str, own: str) -> str:
    """Return `policy` with the sites that may frame the server, and those that `own` names."""
    sites = framers(own.removeprefix(ANCESTORS).strip())
    if not sites:
        return policy
    return policy.replace(f"{ANCESTORS} 'none'", ANCESTORS) + f" {sites}"  # which stands last


def framable(response: Response, sites: str) -> Response:
    """Let `sites` frame the page; the guard completes the policy."""
    if sites:
        response.headers[POLICY] = f"{ANCESTORS} {sites}"
    return response


def keep(
    response: Response,
    request: Request,
    name: str,
    value: str,
    seconds: int,
    *,
    path: str = "/",
    sites: str = "",
) -> None:
    """Set a cookie for so many seconds; in a frame of `sites` it arrives over https alone."""
    safe = request.url.scheme == "https"
    inside = safe and bool(os.environ.get(FRAMED_BY) or sites)
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=rooted(path),
        httponly=True,
        samesite="none" if inside else "lax",
        secure=safe,
    )
    if inside:  # which Starlette writes from Python 3.14 on
        header, written = response.raw_headers[-1]
        response.raw_headers[-1] = (header, written + b"; Partitioned")
