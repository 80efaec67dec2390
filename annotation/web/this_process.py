"""Which of several servers answers.

A page of Gradio waits for the answers to its events at the process that drew it; where a proxy
sends them elsewhere they are lost, and the page has to be able to say so.
"""

import secrets
from functools import cache

HEADER = "X-Studio-Process"


@cache
def name() -> str:
    """A name of this process that tells nothing about it."""
    return secrets.token_hex(8)
