"""Words that several pages share: counts, lists, how good a target model was."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from semsim.base.storage.places import toml_of

PEOPLE, JURY, MODEL = "people", "jury", "model:"  # the column voter; a model's name comes behind
_SIGNS = {letter: f"\\{letter}" for letter in "\\|*_`[]<>#"}


def agreeing(n: int, one: str, many: str) -> str:
    """The word that goes with `n` things: "has" with one, "have" with none or several."""
    return one if n == 1 else many


def counted(n: int, one: str, many: str = "") -> str:
    """`n` things by what they are called: "1 model", "1,200 images"; `many` where no s is added."""
    return f"{n:,} {agreeing(n, one, many or one + 's')}"


def capital(text: str) -> str:
    """Return `text` as a sentence begins."""
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str]) -> str:
    """Names one after another: "a", "a and b", "a, b and c"; at least one."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def voters_of(simulated: bool, model: str = "") -> str:
    """Return who votes in a study, as the column `voter` of tables has it.

    Args:
        simulated: Whether programs vote.
        model: Name of the vision-language model that does; empty for the jury.
    """
    return (f"{MODEL}{model}" if model else JURY) if simulated else PEOPLE


def voters_words(voter: str) -> str:
    """Return the noun for voters, by `voters_of`; it names no people where programs voted."""
    model = voter.removeprefix(MODEL)
    if model != voter:
        return f"model annotators ({model})"
    return PEOPLE if voter == PEOPLE else "simulated annotators"


@cache
def jury_words(of: str = "simulated") -> str:
    """Return how near programs come to people, as `benchmarks.jury` measured it.

    Args:
        of: "simulated" for annotators, "classifier" for a reference classifier.
    """
    return str(toml_of("semsim.base", "jury.toml")[of])


def simulated_words(simulated: bool) -> list[str]:
    """Return the line that a text begins with where programs voted, or none."""
    said = f"Simulated votes: no evidence about people. {jury_words()}"
    return [said] if simulated else []


def first_of(
    names: Sequence[str], most: int, between: str = ", ", last: str = " and {} more"
) -> str:
    """The first `most` of `names`; `last`, with how many more there are, where there are any."""
    more = len(names) - most
    return between.join(names[:most]) + (last.format(f"{more:,}") if more > 0 else "")


def percent(
    share: float, low: float = math.nan, high: float = math.nan, why: str | None = None
) -> str:
    """Write a share and the ends of its interval, such as "73% [70, 77]"; a dash for no share.

    It is in whole percent, with decimals where it would else read as 0 or 100 and is not.

    Args:
        why: Why there are no ends, which then stands in the brackets; without it there are none.
    """
    if math.isnan(share):
        return "–"
    for places in range(3):
        text = f"{share:.{places}%}"
        if float(text[:-1]) not in (0, 100) or share in (0, 1):
            break
    known = not (math.isnan(low) or math.isnan(high))
    ends = f"{100 * low:.0f}, {100 * high:.0f}" if known else why
    return f"{text} [{ends}]" if ends else text


def with_spread(
    mean: float | None, sd: float | None = None, form: str = ".2f", none: str = "–"
) -> str:
    """Return a mean and its standard deviation, as "0.31 ± 0.02", "∞" of what is infinite.

    Args:
        sd: None or NaN where it is not known, as of one value: then the mean stands alone.
        form: Of both numbers.
        none: Where there is no mean.
    """
    if mean is None or math.isnan(mean):
        return none
    if math.isinf(mean):
        return "∞"
    return f"{mean:{form}}" + ("" if sd is None or math.isnan(sd) else f" ± {sd:{form}}")


def words_for_seconds(seconds: float) -> str:
    """A span of time the way people say it, such as "2 min 5 s"."""
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    if hours >= 48:
        return f"{round(whole / 86400)} days"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def target_words(
    share: float | None,
    chance: float | None,
    at_chance: bool | None,
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    note: str = "",
) -> str:
    """Say how good a target model was: "71% right (chance 2%)", "3% right: at chance (2%)".

    Args:
        share: Of its test images that it names right, None where it was not kept.
        chance: What guessing gets.
        at_chance: Whether the two differ by no more than luck, see `semsim.targets.chance`.
        epsilon, delta: What DP-SGD promises of each training image, ", ε = 8.1 at δ = 1e-05"; delta
            is None where the model was trained otherwise, and epsilon where nothing is promised.
        note: Follows the chance, see `chance_in`.
    """
    if share is None:
        return "not kept"
    guess = "not kept" if chance is None else f"{percent(chance)}{note}"
    test = f": at chance ({guess})" if at_chance else f" (chance {guess})"
    return f"{percent(share)} right{test}{_promise(epsilon, delta)}"


def _promise(epsilon: float | None, delta: float | None) -> str:
    if delta is None:
        return ""
    if epsilon is None:
        return f", ε = ∞ at δ = {delta:g}"
    told = f"{epsilon:.3g}" if epsilon < 100 else f"{epsilon:,.0f}"
    return f", ε = {told} at δ = {delta:g}"


def chance_in(facts: Mapping[str, Any]) -> tuple[float | None, str]:
    """Return what guessing gets in a kept test, and ", the commonest class" where that does.

    None where it was not kept.
    """
    chance, classes = facts.get("chance"), facts.get("n_classes")
    if chance is None or not classes or percent(chance) == percent(1 / classes):
        return chance, ""
    return chance, ", the commonest class"


def words_of_test(facts: object) -> str:
    """`target_words` of what is kept of a model's test, see `semsim.targets.chance.facts_of_test`.

    Args:
        facts: A mapping, which may lack some of them; anything else says nothing.
    """
    known = facts if isinstance(facts, Mapping) else {}
    chance, note = chance_in(known)
    promised = known.get("epsilon"), known.get("delta")
    return target_words(known.get("accuracy"), chance, known.get("at_chance"), *promised, note=note)


def in_markdown(text: str) -> str:
    """`text` without line breaks, in which nothing is markup or HTML."""
    return "".join(_SIGNS.get(letter, letter) for letter in " ".join(text.split()))


def all_in_markdown(value: Any) -> Any:
    """`value`, made of JSON, with every text as `in_markdown` has it; keys too."""
    if isinstance(value, str):
        return in_markdown(value)
    if isinstance(value, dict):
        return {all_in_markdown(key): all_in_markdown(one) for key, one in value.items()}
    return [all_in_markdown(one) for one in value] if isinstance(value, list | tuple) else value
