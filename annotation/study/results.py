"""Results of a study, as the Results page shows them, computed here or in a process of its own."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import IO, cast

import numpy as np
import pandas as pd

from annotation.design.candidates import ListFacts
from annotation.domain import Study
from annotation.store import Store
from annotation.study.exports import Collected
from annotation.votes.aggregate import ballots_of, summary_table
from annotation.votes.agreement import Coding, agreement_table, codings_of, pair_table, pairs_of
from annotation.votes.annotators import (
    annotator_table,
    carry_over_table,
    check_table,
    none_bias_table,
    repeat_table,
    with_trials,
)
from annotation.votes.rates import (
    DETECTION_KINDS,
    confusion_table,
    detection_table,
    rate_table,
    standstill_of,
    whole_rate,
)
from annotation.votes.reliability import Reliability, open_questions, reliability
from semsim.base.errors import DataError, SemsimError, StoreError
from semsim.base.stats.ceiling import Ceiling, ceiling_of_votes
from semsim.base.stats.standstill import Standstill

EXAMPLES = 4  # pictures of a kind
CLEAR = 0.8  # share of the votes on a picture that say one thing, from which it is clear
_ROUNDING = 1e-9  # of shares
POLITE = 10  # so much a process gives way to the server (os.nice)
IDLE = 300.0  # seconds after which a process that nobody asks ends


@dataclass(frozen=True, kw_only=True)
class Example:
    """A picture that shows what a share means; `original` and `reconstruction` are SHA-256."""

    model: str
    class_name: str
    n_recognised: int
    n_votes: int
    original: str
    reconstruction: str


@dataclass(frozen=True, kw_only=True)
class Results:
    """A study's results.

    Attributes:
        n_votes: Counted votes on reconstructions, n_items of them with a vote, n_full with all K.
        rate: Share of decided ones that are recognised, with the ends of its interval.
        pairs: Pairwise κ of every coding.
        detection: None but for a pair study. checks, none_bias, repeats and carry_over are the
            tables of `votes.annotators`; annotators has a row for each person with votes or trials.
        lists: What candidate lists tell, None without any.
        seen, unseen: Pictures that people clearly recognised, and such as they clearly did not
            (`CLEAR`).
        became: How many votes have each `VoteStatus`.
        standstill: The models' names, and their bands look by look; None where no vote has a time.
    """

    study: Study
    n_votes: int
    n_items: int
    n_full: int
    n_people: int
    rate: tuple[float, float, float]
    rates: pd.DataFrame
    agreement: pd.DataFrame
    pairs: pd.DataFrame
    annotators: pd.DataFrame
    confusion: pd.DataFrame
    items: pd.DataFrame
    detection: pd.DataFrame | None
    checks: pd.DataFrame
    none_bias: pd.DataFrame
    repeats: pd.DataFrame
    carry_over: pd.DataFrame
    reliability: Reliability
    open_questions: dict[str, int]
    ceiling: Ceiling
    became: Mapping[str, int]
    standstill: tuple[tuple[str, ...], Standstill] | None = None
    lists: ListFacts | None = None
    seen: tuple[Example, ...] = ()
    unseen: tuple[Example, ...] = ()

    @property
    def n_decided(self) -> int:
        """Pictures on which people have come to a verdict."""
        return int(self.items["recognisable"].notna().sum())

    @property
    def n_recognised(self) -> int:
        """Those whose verdict is that they are recognised."""
        return int(self.items["recognisable"].fillna(False).sum())


def results_of(
    study: Study,
    votes: pd.DataFrame,
    lists: ListFacts | None = None,
    pictures: pd.DataFrame | None = None,
) -> Results:
    """Everything from the table of a study's votes; the study's seed draws the resamples.

    Args:
        pictures: `item`, `original` and `reconstruction`, where examples are to be shown.
    """
    kind, k, seed = study.kind, study.spec.votes_per_item, study.spec.seed
    ballots = ballots_of(votes, np.random.default_rng(seed))
    items = summary_table(ballots, k)
    pairs = {coding: pairs_of(ballots, coding) for coding in codings_of(kind)}
    shown, detection = ballots, None
    if kind.decoys:
        shown = ballots_of(votes, np.random.default_rng(seed), kinds=DETECTION_KINDS)
        detection = detection_table(shown)
    checks, repeats = check_table(votes, kind), repeat_table(votes, kind)
    people = annotator_table(ballots, kind, pairs[Coding.RECOGNISED])
    return Results(
        study=study,
        n_votes=len(ballots.votes),
        n_items=len(items),
        n_full=int((~items["too_few_votes"]).sum()),
        n_people=len(ballots.annotators),
        rate=whole_rate(ballots, k),
        rates=rate_table(ballots, k),
        agreement=agreement_table(ballots, list(pairs.values())),
        pairs=pd.concat([pair_table(ballots, one) for one in pairs.values()], ignore_index=True),
        annotators=with_trials(people, checks, repeats),
        confusion=confusion_table(shown, kind),
        items=items,
        detection=detection,
        checks=checks,
        none_bias=none_bias_table(votes, kind),
        repeats=repeats,
        carry_over=carry_over_table(votes),
        reliability=reliability(ballots, items, kind),
        open_questions=open_questions(items, k),
        ceiling=_ceiling(votes),
        became={str(one): int(n) for one, n in votes["status"].value_counts().items()},
        standstill=standstill_of(votes, study.n_reconstructions * k),
        lists=lists,
        seen=() if pictures is None else examples(items, pictures, recognised=True),
        unseen=() if pictures is None else examples(items, pictures, recognised=False),
    )


def examples(
    items: pd.DataFrame, pictures: pd.DataFrame, *, recognised: bool
) -> tuple[Example, ...]:
    """At most `EXAMPLES` decided pictures of different originals that are clear, see `CLEAR`.

    Args:
        items: An `aggregate.summary_table`. As far as there are, each is of another class and
            model.
    """
    alike = items[items["recognisable"].notna() & (items["recognisable"] == recognised)]
    share = alike["mean_response"] if recognised else 1 - alike["mean_response"]
    alike = alike[share >= CLEAR - _ROUNDING]
    ordered = alike.sort_values(
        ["mean_response", "n_votes", "item"], ascending=[not recognised, False, True]
    ).merge(pictures[["item", "original", "reconstruction"]], on="item")
    one_each = ordered.drop_duplicates("image_id")
    again = one_each.duplicated("class_name").astype(int) + one_each.duplicated("model")
    # Of one mind first: variety counts among those that are equally clear.
    chosen = one_each.assign(again=again).sort_values(
        ["mean_response", "again"], ascending=[not recognised, True], kind="stable"
    )
    names = [one.name for one in fields(Example)]
    return tuple(
        Example(**{name: row[name] for name in names})
        for row in chosen.head(EXAMPLES).to_dict("records")
    )


def _ceiling(votes: pd.DataFrame) -> Ceiling:
    """Compute that of people; where it cannot be told from their votes, the reason."""
    try:
        return ceiling_of_votes(votes)
    except DataError as error:
        return Ceiling(undefined=str(error).rstrip("."))


def read_results(store: Store, study_id: str) -> Results:
    """The results as they are now; raises `NotFoundError`."""
    return results_of(*Collected(store=store, study_id=study_id).read())


class Apart:
    """Results of one study from a process of its own, which keeps the votes it has read.

    It imports no more than this needs, and ends with this process, or once nobody has asked for
    `IDLE` seconds.
    """

    def __init__(self, url: str, study_id: str) -> None:
        self._about = url, study_id
        self._works: subprocess.Popen[bytes] | None = None

    def read(self) -> Results:
        """As `read_results`; one at a time. Raises `StoreError` where it cannot be computed."""
        works, self._works = self._works, None
        try:
            found = self._ask(works)
        except (EOFError, OSError, ValueError):  # it has ended by itself, or was closed
            if works is not None:
                _end(works)
                return self.read()
            found = "its process broke; see the log of the studio"
        if isinstance(found, str):
            raise StoreError(f"The results could not be computed: {found}")
        return found

    def close(self) -> None:
        """End the process once it has answered."""
        if self._works is not None:
            _end(self._works)

    def _ask(self, works: subprocess.Popen[bytes] | None) -> Results | str:
        if works is None:
            works = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import answer; answer()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for this process, with which that one ends
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
            )
            pickle.dump(self._about, cast(IO[bytes], works.stdin))  # arguments are seen by others
        asking = cast(IO[bytes], works.stdin)
        asking.write(b"\n")
        asking.flush()
        found: Results | str = pickle.load(cast(IO[bytes], works.stdout))
        self._works = works
        return found


def _end(works: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):  # what was asked of one that had ended
        cast(IO[bytes], works.stdin).close()


def answer() -> None:
    """The other end of `Apart`: for each line that comes in, pickled results go out."""
    if hasattr(os, "nice"):
        os.nice(POLITE)
    url, study_id = pickle.load(sys.stdin.buffer)
    with Store(url) as store:
        votes = Collected(store=store, study_id=study_id)
        while _asked():
            try:
                found: Results | str = results_of(*votes.read())
            except SemsimError as error:
                found = str(error)
            try:
                pickle.dump(found, sys.stdout.buffer)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                os._exit(0)


def _asked() -> bool:
    rest = threading.Timer(IDLE, os._exit, (0,))
    rest.start()
    line = sys.stdin.buffer.readline()
    rest.cancel()
    return bool(line)
