"""The table of headlines on the page of benchmarks, from the files of results.

A number in braces is {NAME KEY format}, as a page has it between two comments; the first one of a
result brings the count it rests on and the command that makes it.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.claims import Claim, command_of, kept, written

_NUMBER = re.compile(r"\{(\S+) (\S+) ([^{}\s]+)\}")


Met = Callable[[Sequence[Claim]], bool]


class Headline(NamedTuple):
    """One row: a question, its result, and whether that meets a target set before.

    Attributes:
        met: Of the numbers in `result`, where there is a target.
    """

    question: str
    result: str
    target: str = ""
    met: Met = lambda found: True


def _count(claim: Claim) -> int:
    return int(claim.n.split()[0].replace(",", ""))


def at_most(limit: float) -> Met:
    """Return the target of a first number of at most `limit`."""
    return lambda found: _value(found[0]) <= limit


def at_least(limit: float) -> Met:
    """Return the target of a first number of at least `limit`."""
    return lambda found: _value(found[0]) >= limit


def share_at_least(limit: float) -> Met:
    """Return the target of a first number of at least this share of its count."""
    return lambda found: _value(found[0]) >= limit * _count(found[0])


def off_by_at_most(limit: float) -> Met:
    """Return the target of a first number that is off the second by at most this share."""
    return lambda found: abs(_value(found[0]) / _value(found[1]) - 1) <= limit


def _value(claim: Claim) -> float:
    assert not isinstance(claim.value, list)
    return claim.value


HEADLINES = (
    Headline(
        "Least coverage of 95% intervals of ρ and τ over 6 to 14 models",
        "{few-models least-coverage .3f}",
        "≥ 0.93",
        at_least(0.93),
    ),
    Headline(
        "Largest type I error of a difference of two metrics",
        "{few-models most-type-i .3f}",
        "≤ 0.06",
        at_most(0.06),
    ),
    Headline(
        "Largest type I error of two metrics swapped, over models",
        "{swaps swaps.most.models .3f}",
        "≤ 0.06",
        at_most(0.06),
    ),
    Headline(
        "PSNR and people, published votes of CIFAR-100: ρ",
        "{published released.psnr.rho .4f[]}",
        "the paper's 0.6703",
        lambda found: round(_value(found[0]), 4) == 0.6703,
    ),
    Headline("PSNR and people, `recurrent`: ρ", "{people recurrent.psnr.rho .2f[]}"),
    Headline(
        "Attack `prior` ahead of InvGrad: CNN4, ReLU, untrained",
        "{gain-symbols cnn4-relu.untrained.gain .1f[]} dB",
    ),
    Headline("The same, trained", "{gain-symbols cnn4-relu.trained.gain .1f[]} dB"),
    Headline(
        "SPEAR: batches of 16 exactly recovered",
        "{spear untrained.16.exact .0fof}",
        "≥ 95%",
        share_at_least(0.95),
    ),
    Headline(
        "Imprint layer: images of a batch of {imprint pictures .0f} exactly recovered",
        "{imprint untrained-servers-pictures.exact .1f} (expected {imprint expected .1f})",
        "deviation ≤ 2%",
        off_by_at_most(0.02),
    ),
    Headline(
        "COPA's variant 3: largest squared error of {copa exact.2 d} attacks",
        "{copa exact.1 .1e}",
        "≤ 1e-12",
        at_most(1e-12),
    ),
    Headline(
        "Seeds in which SemSim beats its initial weights and pixel metrics on unseen degradations",
        "{unseen both dof}",
        "≥ 80%",
        share_at_least(0.8),
    ),
    Headline("Share of a core of an idle studio", "{idle share .2%}", "≤ 0.5%", at_most(0.005)),
)


def table() -> list[str]:
    """Return the lines of the table in Markdown."""
    head = ["question", "result", "target", "n", "command"]
    rows = [head, ["---"] * len(head), *map(_row, HEADLINES)]
    return [f"| {' | '.join(row)} |" for row in rows]


def names() -> set[str]:
    """Return the files of results that the table shows."""
    return {one[1] for row in HEADLINES for one in _NUMBER.finditer(f"{row.question}{row.result}")}


def _row(one: Headline) -> list[str]:
    (name, key, _), *_ = shown = _NUMBER.findall(one.result)
    found = [kept(file)[which] for file, which, _ in shown]
    count = re.sub(r"\d{4,}", lambda n: f"{int(n[0]):,}", found[0].n).replace(" a row", " per row")
    target = f"{one.target}: {'met' if one.met(found) else 'missed'}" if one.target else "–"
    return [_with_numbers(one.question), _with_numbers(one.result), target, count, _code(name, key)]


def _with_numbers(text: str) -> str:
    return _NUMBER.sub(lambda one: written(kept(one[1])[one[2]], one[3]), text)


def _code(name: str, key: str) -> str:
    return f"`{command_of(name, key).removeprefix('python -m ')}`"
