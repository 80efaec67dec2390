"""A model answers a study: what it is sent, what becomes of its answers, and what it may cost."""

import hashlib
import json
import logging
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from chat_server import KEY, Said, first_word, pixels, serving
from helpers import limit, until
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.domain import StudyStatus
from annotation.errors import StudyError
from annotation.images import decode, encode
from annotation.spec import StudySpec
from annotation.store import model_calls
from annotation.store.model_calls import Spent
from annotation.study import vlm
from annotation.study.endpoint import Endpoint, key_of
from annotation.study.exports import export_labels, export_votes, read_items
from annotation.study.labelling import progress, set_status
from annotation.study.simulate import simulate
from annotation.study.vlm import Budget, Run, answer_in, as_shown, asked_words
from semsim.base.columns import SCORE_COLUMNS
from semsim.base.errors import DataError, MissingExtraError
from semsim.base.stats.evidence import gather

SHORT = limit(0.3)  # seconds for a reply, of a server that hangs for longer
USUAL = limit(5)  # the same of a server that answers
MODEL = "toy-vl"
ITEMS = 8  # of `small_study`


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(vlm, "BACKOFF", 0.01)
    monkeypatch.setattr(vlm, "SIDE", 24)


@pytest.fixture
def made(make_study):
    return make_study(voter=MODEL, votes_per_item=3)


@pytest.fixture
def run_of(store, images):
    def make(study, server, n=1, key=KEY, timeout=USUAL, **how):
        endpoint = Endpoint(address=server.url, model=MODEL, key=key, timeout=timeout)
        return Run(
            store=store, study=study, images=images, endpoint=endpoint, n_annotators=n, **how
        )

    return make


def spent_of(store, study) -> Spent:
    return store.read(lambda tx: model_calls.spent(tx, study.id))


# ------------------------------------------------------------------ votes


def test_a_study_of_a_model_needs_no_jury_and_every_vote_is_marked(store, images, made, run_of):
    with serving(first_word) as server:
        state = run_of(made, server, 3)()
    assert len(server.asked) == ITEMS * 3
    assert (state.spent.votes, state.done, state.ended) == (ITEMS * 3, ITEMS * 3, "")
    votes = export_votes(store, made.id)
    assert votes.groupby("annotator").size().to_dict() == {f"{MODEL} {n}": ITEMS for n in (1, 2, 3)}
    assert votes["simulated"].all()
    assert set(votes["voter"]) == {f"model:{MODEL}"}
    assert set(votes["status"]) == {"counted"}
    labels = export_labels(store, made.id, images)
    assert set(labels["voter"]) == {f"model:{MODEL}"}
    assert labels["recognisable"].notna().all()


def test_answers_are_kept_under_the_name_of_the_class(store, make_study, run_of):
    study = make_study(voter=MODEL, votes_per_item=1, class_names={"Cat": "a big cat"})
    right = {}
    for row in read_items(store, study.id):
        right[row["shown"]] = "a big cat" if row["class_name"] == "Cat" else row["class_name"]

    def says(asked):
        shown = {as_shown(path.read_bytes(), study.spec): path.stem for path in pictures}
        return Said(text=right[shown[asked.pictures[0]]].upper())

    with serving(says) as server:
        run = run_of(study, server)
        pictures = list(run.images.glob("*.png"))
        run()
    votes = export_votes(store, study.id)
    assert votes["recognised"].all()
    assert (votes["answer"] == votes["class_name"]).all()


@pytest.mark.parametrize("task", ["pair", "rating"])
def test_other_tasks_show_the_original_first(store, images, make_study, run_of, task):
    study = make_study(voter=MODEL, task=task, votes_per_item=1)
    answer = {"pair": "Same", "rating": "4: All of it"}[task]
    with serving(answer) as server:
        run_of(study, server)()
    assert set(export_votes(store, study.id)["answer"]) == {{"pair": "same", "rating": "4"}[task]}
    known = {row["original"] for row in read_items(store, study.id)}
    firsts = {one.pictures[0] for one in server.asked}
    assert all(len(one.pictures) == 2 for one in server.asked)
    kept = [images / f"{digest}.png" for digest in known]
    originals = {as_shown(path.read_bytes(), study.spec) for path in kept}
    assert firsts <= originals


# ------------------------------------------------------------------ what it is sent


def test_a_request_has_pictures_and_words_and_nothing_else(store, images, made, run_of):
    with serving(first_word) as server:
        run_of(made, server)()
    rows = read_items(store, made.id)
    known = {as_shown((images / f"{row['shown']}.png").read_bytes(), made.spec) for row in rows}
    secret = {str(row[name]) for row in rows for name in ("item", "model", "image_id", "shown")}
    secret |= {made.name, made.id, made.token, str(images), "resnet", "invgrad", "symbols"}
    words = {asked.words for asked in server.asked}
    for asked in server.asked:
        assert set(asked.body) == {"model", "messages", "max_tokens"}
        assert [set(one) for one in asked.parts] == [{"type", "image_url"}, {"type", "text"}]
        assert set(asked.parts[0]["image_url"]) == {"url"}
        assert asked.pictures[0] in known
        assert not pixels(asked.pictures[0]).info  # no name, no comment
        names = {*asked.headers}
        assert names == {
            *("host", "accept", "accept-encoding", "connection", "content-length"),
            *("content-type", "authorization", "user-agent"),
        }
        assert asked.headers["user-agent"] == "semsim-studio"
        text = json.dumps([asked.words, asked.headers])
        assert not [one for one in secret if one and one in text]
    # Items with the same list are told apart by their pictures alone, whatever they show.
    assert len(words) == len({tuple(asked.offered) for asked in server.asked})


def test_the_words_are_those_of_the_study(make_study, store):
    own = {"recognition.question": "Was siehst du?", "recognition.rules": "Eine Regel."}
    study = make_study(voter=MODEL, texts=own, instructions="Lies das.")
    item = _item(store, study)
    words, offered = asked_words(study.spec, item)
    about, question, lines, form = words.split("\n\n")
    assert (about, question) == ("Lies das.\nEine Regel.", "Was siehst du?")
    shown = [name.replace("_", " ") for name in item.candidates]
    assert lines.splitlines()[: len(shown)] == shown
    assert form == vlm._FORM
    for name, word in zip(item.candidates, shown, strict=True):
        assert answer_in(f" “{word}.” ", offered) == (name, None)


def _item(store, study):
    from annotation.store import leases, people

    now = study.created
    who = store.write(lambda tx: people.annotator_named(tx, study.id, "x", now, simulated=True))
    return store.write(lambda tx: model_calls.next_item(tx, leases.claimer(tx, who, now), "t", now))


def test_what_is_no_line_of_those_offered_is_no_answer(make_study, store):
    study = make_study(voter=MODEL)
    item = _item(store, study)
    _, offered = asked_words(study.spec, item)
    word = item.candidates[0]
    for text in ("", f"I think it is a {word}", f"{word} or {item.candidates[1]}", "maybe", "1"):
        assert answer_in(text, offered) is None
    cannot, other = "I can’t make it out", "I see something else"
    assert answer_in(cannot, offered) == ("none", "cannot_make_out")
    assert answer_in(other, offered) == ("none", "not_in_list")
    assert answer_in("None of these", offered) == ("none", None)


@given(
    side=st.integers(1, 700),
    view=st.sampled_from(["squares", "smooth", "smooth-and-small"]),
    most=st.sampled_from([0, 1, 4]),
)
@settings(max_examples=30, deadline=None)
def test_a_picture_is_enlarged_by_whole_multiples_as_the_view_has_it(side, view, most):
    rng = np.random.default_rng(side)
    plain = rng.integers(0, 256, (side, max(1, side // 2), 3), dtype=np.uint8)
    spec = StudySpec(name="x", task="recognition", view=view, image_scale=most)
    shown = decode(as_shown(encode(plain), spec))
    scale = shown.shape[0] // side
    assert shown.shape[0] == scale * side
    assert scale == 1 or shown.shape[0] <= vlm.SIDE
    assert not most or scale <= most
    if view == "squares":
        assert (shown[::scale, ::scale] == plain).all()
        assert (shown == plain.repeat(scale, 0).repeat(scale, 1)).all()
    if view == "smooth-and-small":
        assert shown.shape[1] > scale * plain.shape[1] + vlm._GAP


# ------------------------------------------------------------------ what goes wrong


def test_refusals_and_malformed_answers_are_counted_and_never_asked_again(store, made, run_of):
    def says(asked):
        kinds = [
            Said(text=None, refusal="I will not"),
            Said(text="", finish="content_filter"),
            Said(status=400, error={"code": "content_filter", "message": "policy"}),
            Said(text="It seems to be a cat, or a dog."),
            Said(text=""),
        ]
        return kinds[asked.number - 1] if asked.number <= len(kinds) else first_word(asked)

    with serving(says) as server:
        state = run_of(made, server)()
        again = run_of(made, server)()
    assert len(server.asked) == ITEMS
    assert (state.spent.refused, state.spent.malformed, state.spent.votes) == (3, 2, ITEMS - 5)
    assert again.spent == state.spent
    assert len(export_votes(store, made.id)) == ITEMS - 5
    assert "3 refused, 2 malformed" in state.text
    with serving(first_word) as server:  # other draws fill the room that was left
        run_of(made, server, 3)()
    assert progress(store, made.id).coverage == [0, 0, 5, 3]


@pytest.mark.parametrize(
    "failure",
    [
        Said(status=500),
        Said(status=503),
        Said(hang=3 * SHORT),
        Said(cut=True),
        Said(raw=b"<html>"),
        Said(raw=b"{}"),
    ],
    ids=["500", "503", "hang", "cut", "html", "empty"],
)
def test_what_may_pass_is_tried_again(store, made, run_of, failure):
    def says(asked):
        return failure if asked.number in (2, 4) else first_word(asked)

    with serving(says) as server:
        state = run_of(made, server, timeout=SHORT)()
    assert (state.spent.calls, state.spent.votes) == (ITEMS + 2, ITEMS)
    assert len(server.asked) == ITEMS + 2


class Counted(threading.Event):
    """Stops a run, and lists for how many seconds the run waited."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def wait(self, timeout=None):
        if timeout:
            self.waits.append(timeout)
        return super().wait(timeout)


def test_who_asks_for_fewer_calls_is_left_alone_for_so_long(made, run_of):
    def says(asked):
        wait = Said(status=429, headers={"Retry-After": "0.4"})
        return wait if asked.number == 3 else first_word(asked)

    stop = Counted()
    with serving(says) as server:
        run_of(made, server, stop=stop)()
    assert server.times[3] - server.times[2] >= 0.4
    assert len(stop.waits) <= 1  # the control: nobody waits without being asked
    assert all(seconds <= 0.4 for seconds in stop.waits)


def test_a_date_is_a_retry_after_too(made, run_of):
    from email.utils import formatdate

    def says(asked):
        date = formatdate(time.time() + 2, usegmt=True)
        return (
            Said(status=429, headers={"Retry-After": date})
            if asked.number == 1
            else first_word(asked)
        )

    stop = Counted()
    with serving(says) as server:
        run_of(made, server, budget=Budget(pictures=1), stop=stop)()
    assert server.times[1] - server.times[0] > 0.8
    assert all(seconds <= 2 for seconds in stop.waits)


def test_an_endpoint_that_stays_away_ends_the_run_and_keeps_what_is_there(store, made, run_of):
    with serving(lambda a: first_word(a) if a.number <= 3 else Said(status=500)) as server:
        with pytest.raises(StudyError, match="failed 6 times in a row: it answered 500"):
            run_of(made, server)()
        server.answer = first_word
        state = run_of(made, server)()
    assert state.spent.votes == ITEMS
    assert len(server.answered) == ITEMS


def test_one_that_asks_for_an_hour_is_not_waited_for(made, run_of):
    hour = Said(status=429, headers={"Retry-After": "3600"})
    with serving(lambda a: hour) as server, pytest.raises(StudyError, match="for fewer calls"):
        run_of(made, server)()
    assert len(server.asked) == 1


def test_a_server_that_names_the_limit_otherwise_gets_it_so(made, run_of):
    def says(asked):
        if "max_tokens" in asked.body:
            message = "Unsupported parameter: use 'max_completion_tokens' instead."
            return Said(status=400, error={"message": message})
        return first_word(asked)

    with serving(says) as server:
        state = run_of(made, server)()
    assert state.spent.votes == ITEMS
    assert len(server.asked) == ITEMS + 1


@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_what_will_not_pass_ends_at_once(made, run_of, status):
    told = f"answered {status}: "
    with serving(lambda a: Said(status=status)) as server, pytest.raises(StudyError, match=told):
        run_of(made, server)()
    assert len(server.asked) == 1


def test_no_key_and_no_address_is_in_an_error_or_in_a_log(made, run_of, caplog):
    caplog.set_level(logging.DEBUG)
    wrong = "sk-wrong-abcdef"
    with serving(first_word) as server:
        with pytest.raises(StudyError, match="answered 401: the key is wrong or missing") as told:
            run_of(made, server, key=wrong)()
        run_of(made, server)()
        assert server.asked[0].headers["authorization"] == f"Bearer {wrong}"  # the control
        run = run_of(made, server, key=wrong)
    chain, error = [], told.value
    while error is not None:
        chain.append(f"{error!r} {error.__dict__}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    text = " ".join([*chain, caplog.text, repr(run), repr(run.endpoint)])
    assert wrong not in text
    assert KEY not in text
    assert server.url not in text


# ------------------------------------------------------------------ budgets


@pytest.mark.parametrize("calls", [1, 5, ITEMS * 3, 100])
def test_calls_are_never_more_than_the_budget_over_all_runs(made, run_of, calls):
    """Failures are calls, too, and draws ask at the same time."""
    says = lambda a: Said(status=500) if a.number in (1, 4, 9) else first_word(a)  # noqa: E731
    with serving(says) as server:
        for _ in range(3):
            state = run_of(made, server, 3, budget=Budget(calls=calls))()
        needed = len(server.asked)
    assert needed <= calls
    assert state.spent.calls == needed
    assert (state.spent.votes == ITEMS * 3) == (calls == 100)
    assert ("used up" in state.ended) == (calls != 100)


@pytest.mark.parametrize("most", [1, 3, ITEMS])
def test_pictures_are_never_more_than_the_budget(store, made, run_of, most):
    with serving(first_word) as server:
        state = run_of(made, server, 3, budget=Budget(pictures=most))()
        more = run_of(made, server, 3, budget=Budget(pictures=most))()
    votes = export_votes(store, made.id)
    assert votes["item"].nunique() == most
    assert len(votes) == len(server.asked) == most * 3
    assert state.wanted == state.done == more.done == most * 3


@pytest.mark.parametrize("usage", [(100, 5), (2000, 900), None])
def test_money_is_never_more_than_the_budget(made, run_of, usage):
    prices = {"price_in": 2.0, "price_out": 8.0}
    budget = Budget(money=0.2, **prices)
    with serving(lambda a: replace(first_word(a), usage=usage)) as server:
        state = run_of(made, server, 3, budget=budget)()
    read, written = usage or (vlm.FIRST_TOKENS, 1024)
    assert len(server.asked) * budget.cost(read, written) <= 0.2
    assert server.asked
    assert ("0.2 may not cover" in state.ended) == (len(server.asked) < ITEMS * 3)
    assert len(server.asked) < ITEMS * 3 or usage == (100, 5)


@given(
    money=st.floats(0, 1),
    costs=st.lists(st.tuples(st.integers(500, 1000), st.integers(0, 1024)), max_size=60),
    silent=st.lists(st.booleans(), max_size=60),
)
def test_no_order_of_replies_spends_more_than_the_budget(money, costs, silent):
    """Of replies that take at most twice the tokens of the dearest before, or of the first."""
    budget = Budget(money=money, price_in=3.0, price_out=15.0)
    now = Spent(
        calls=0, silent=0, items=0, votes=0, refused=0, malformed=0,
        tokens_in=0, tokens_out=0, most_in=0,
    )  # fmt: skip
    truly = 0.0
    for (read, written), lost in zip(costs, silent, strict=False):
        if budget.used_up(now, 1024):
            break
        truly += budget.cost(read, written)
        now = replace(now, calls=now.calls + 1)
        if lost:
            now = replace(now, silent=now.silent + 1)
        else:
            now = replace(
                now, tokens_in=now.tokens_in + read, tokens_out=now.tokens_out + written,
                most_in=max(now.most_in, read),
            )  # fmt: skip
    assert truly <= money + 1e-12


def test_money_needs_prices():
    with pytest.raises(StudyError, match="--price-in, --price-out"):
        Budget(money=1.0)


# ------------------------------------------------------------------ going on


class Killed(BaseException):
    """A process that ends between two lines."""


@pytest.mark.parametrize("after", [0, 1, 7, 13, ITEMS * 3 - 1])
def test_a_run_that_breaks_off_goes_on_and_asks_nothing_twice(made, run_of, after):
    def broken(state):
        if state.done >= after:
            raise Killed

    with serving(first_word) as server:
        with pytest.raises(Killed):
            run_of(made, server, 3, tell=broken)()
        begun = len(server.asked)
        assert after <= begun < ITEMS * 3 or after == ITEMS * 3 - 1
        state = run_of(made, server, 3)()
    assert state.spent.votes == ITEMS * 3
    assert len(server.asked) == ITEMS * 3
    assert set(Counter(one.pictures for one in server.asked).values()) == {3}


KILLED = """
import sys
from pathlib import Path
from annotation.store import Store
from annotation.study.endpoint import Endpoint
from annotation.study.labelling import list_studies
from annotation.study.vlm import Run
url, images, address, key = sys.argv[1:]
with Store(url) as store:
    (study,) = list_studies(store)
    Run(store=store, study=study, images=Path(images), n_annotators=1,
        endpoint=Endpoint(address=address, model="toy-vl", key=key))()
"""


def test_a_killed_process_loses_the_call_under_way_and_no_answer(store, images, made, run_of):
    """A call on record is no free call; its picture waits for a while."""

    def says(asked):
        return Said(hang=60) if asked.number == 4 else first_word(asked)

    with serving(says) as server:
        given = [store.url, str(images), server.url, KEY]
        process = subprocess.Popen([sys.executable, "-c", KILLED, *given])
        until(lambda: len(server.asked) == 4, 60)
        process.kill()
        process.wait()
        server.answer = first_word
        state = run_of(made, server)()
    assert state.spent.votes == ITEMS - 1
    assert (state.spent.calls, state.spent.silent, state.held) == (ITEMS, 1, 1)
    assert "1 picture is reserved by another run, or by one that was killed" in state.text
    asked = Counter(one.pictures for one in server.asked)
    assert set(asked.values()) == {1}


def test_two_runs_at_once_ask_nothing_twice(made, run_of):
    with serving(lambda a: replace(first_word(a), hang=0.02)) as server:
        runs = [run_of(made, server, 3) for _ in range(2)]
        threads = [threading.Thread(target=run) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run_of(made, server, 3)()
    assert set(Counter(one.pictures for one in server.asked).values()) == {3}


def test_a_run_can_be_cancelled(made, run_of):
    stop = threading.Event()
    with serving(first_word) as server:
        run = run_of(made, server, stop=stop, tell=lambda s: s.done < 3 or stop.set())
        state = run()
        assert (state.done, state.ended, state.held) == (3, "it was cancelled", 0)
        assert "Stopped: it was cancelled." in state.text
        assert run_of(made, server)().spent.votes == ITEMS
    assert len(server.asked) == ITEMS


def test_a_cancelled_run_does_not_wait_for_the_endpoint(made, run_of):
    stop, slow = threading.Event(), Said(status=429, headers={"Retry-After": "300"})
    with serving(lambda a: slow) as server:
        run = run_of(made, server, stop=stop)
        thread = threading.Thread(target=run)
        thread.start()
        until(lambda: server.asked, 10)
        stop.set()
        thread.join(limit(5))
        assert not thread.is_alive()


def test_the_time_left_is_told(made, run_of):
    told = []
    with serving(first_word) as server:
        run_of(made, server, tell=told.append)()
    assert [one.done for one in told] == [*range(1, ITEMS + 1)]
    assert all(one.text.endswith("left.") for one in told[:-1])
    assert "left" not in told[-1].text


# ------------------------------------------------------------------ who may not


def test_refusals_of_a_run(store, make_study, made, run_of):
    with serving(first_word) as server:
        refused = {
            "is answered by people. A model answers only": make_study("people"),
            "is answered by simulated annotators": make_study("jury", simulated=True),
            "is answered by the model other; got toy-vl": make_study("other", voter="other"),
        }
        for words, study in refused.items():
            with pytest.raises(StudyError, match=words):
                run_of(study, server)()
        with pytest.raises(StudyError, match=r"4 draws are asked for.* takes 3 votes"):
            run_of(made, server, 4)()
        paused = set_status(store, made.id, StudyStatus.PAUSED)
        with pytest.raises(StudyError, match=r"is paused\. Start it first"):
            run_of(paused, server)()
        with pytest.raises(StudyError, match="not by simulated annotators: add --with vlm"):
            simulate(store, made.id)
    assert not server.asked


def test_who_lacks_the_library_is_told_the_extra(monkeypatch):
    monkeypatch.setattr("semsim.base.storage.optional.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"semsim-studio\[vlm\]"):
        Endpoint(address="http://127.0.0.1:1/v1", model=MODEL)


@pytest.mark.parametrize(
    "address",
    [
        "http://me:sk-secret@127.0.0.1/v1",
        "https://host/v1?key=sk-secret",
        "host/v1",
        "file:///x",
        "",
    ],
)
def test_an_address_is_one_and_has_no_key_in_it(address):
    with pytest.raises(StudyError) as told:
        Endpoint(address=address, model=MODEL)
    assert "secret" not in str(told.value)


def test_the_key_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("SEMSIM_VLM_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")
    assert key_of() == ""
    monkeypatch.setenv("SEMSIM_VLM_KEY", " sk-1 ")
    assert key_of() == "sk-1"
    file = tmp_path / "key"
    file.write_text("sk-2\n")
    assert key_of(file) == "sk-2"
    monkeypatch.setenv("SEMSIM_VLM_KEY_FILE", str(file))
    assert key_of() == "sk-2"
    for bad in ("", "sk-3\nsk-4", "ключ"):
        file.write_text(bad)
        with pytest.raises(StudyError, match="should hold the key alone") as told:
            key_of(file)
        assert not bad or bad not in str(told.value)
    with pytest.raises(StudyError, match="cannot be read: No such file"):
        key_of(tmp_path / "none")


def test_no_key_of_the_environment_goes_to_an_endpoint(made, run_of, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    with serving(first_word, key="none") as server:
        run_of(made, server, key="")()
    text = json.dumps([one.headers for one in server.asked])
    assert "another-service" not in text
    assert "secret" not in text


# ------------------------------------------------------------------ never mixed


def test_votes_of_a_model_and_of_people_are_never_one_verdict(store, make_study, made, run_of):
    with serving(first_word) as server:
        run_of(made, server, 3)()
    model = export_votes(store, made.id)
    evidence = gather(model, _no_scores(), ())
    assert (evidence.simulated, evidence.model) == (True, MODEL)
    assert evidence.voters == f"model annotators ({MODEL})"
    people = model.assign(voter="people", simulated=False, annotator="Anna")
    both = pd.concat([model, people], ignore_index=True)
    with pytest.raises(
        DataError, match=f"voter must be one for a study; got model:{MODEL}, people"
    ):
        gather(both, _no_scores(), ())


def _no_scores():
    return pd.DataFrame(columns=list(SCORE_COLUMNS))


def test_the_protocol_fixes_the_model(make_study):
    spec = StudySpec(name="x", task="recognition", voter=MODEL)
    assert spec.simulated
    assert (spec.voters, spec.mark) == (f"model:{MODEL}", f"votes of {MODEL}")
    assert make_study("a", voter=MODEL).protocol != make_study("b", voter="another").protocol
    for bad in ("x" * 65, "a\nb", " "):
        with pytest.raises(StudyError, match="The name of a model has 1 to 64 letters"):
            StudySpec(name="x", task="recognition", voter=bad)


def test_pictures_are_told_apart_by_their_content(made, run_of, images):
    """The control of all counts above: every item of the study shows another picture."""
    with serving(first_word) as server:
        run_of(made, server)()
    shown = {hashlib.sha256(b"".join(one.pictures)).hexdigest() for one in server.asked}
    assert len(shown) == ITEMS
