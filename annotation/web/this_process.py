"""Name of the process that answers, among several servers.

What a page of Gradio was last drawn with, such as the choices of a list, is known to the process
that drew it alone. Such a page says with its events which process that is, and another one refuses
them in words.
"""

import secrets
from functools import cache

HEADER = "X-Studio-Process"
OTHER = (
    "The studio was started again after it drew this page, and does not take what you do here. "
    "Reload the page. If this comes back without a restart, a web server in front spreads what one "
    "browser asks over several processes: see “Stickiness” in deploy/nginx.conf."
)


@cache
def name() -> str:
    """A name of this process that tells nothing about it."""
    return secrets.token_hex(8)
