import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from made_federated import SETTINGS, made_data
from safetensors.torch import load

from semsim.base.errors import DataError, SettingsError
from semsim.systems.federated.flower.meeting import Guest, Meeting, facts_of
from semsim.systems.federated.rounds import train
from semsim.systems.federated.settings import Pbpfl

HIDDEN = dataclasses.replace(SETTINGS, masks=Pbpfl(noise_scope="round", zero_sum=True))


class Room:
    """A wire within one process: guests by node; those that are gone answer nothing."""

    def __init__(self, guests):
        self.guests = dict(enumerate(guests, start=10))
        self.gone: dict[int, str] = {}  # node: "silent" (still listed, as Flower does) or "error"
        self.sent: list[tuple[int, str, Mapping[str, Any]]] = []
        self.waiting: dict[str, Any] = {}
        self.before = lambda room, node, kind, fields: None

    def nodes(self):
        return list(self.guests)

    def push(self, node, kind, fields):
        self.before(self, node, kind, fields)
        self.sent.append((node, kind, fields))
        message = f"m{len(self.sent)}"
        if node not in self.gone:
            self.waiting[message] = self.guests[node].answer(kind, fields)
        elif self.gone[node] == "error":
            self.waiting[message] = None
        return message

    def pull(self, ids):
        return {one: self.waiting.pop(one) for one in ids if one in self.waiting}


def guests(count=2, data=None):
    return [Guest(number, lambda _: data or made_data(), dealt=True) for number in range(count)]


def meeting(room, settings=SETTINGS, **more):
    return Meeting(settings=settings, data=made_data(), wire=room, secret=settings.seed, **more)


def same(found, expected):
    pairs = zip(found.parameters(), expected.parameters(), strict=True)
    return all(torch.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in pairs)


@pytest.mark.parametrize("settings", [SETTINGS, HIDDEN, dataclasses.replace(SETTINGS, clients=3)])
def test_a_meeting_trains_what_one_process_trains(settings):
    room = Room(guests(settings.clients))
    expected = train(settings, made_data())
    found = meeting(room, settings).held()
    assert same(found.model, expected.model)
    assert found.curve[-1].loss == pytest.approx(expected.curves[-1].loss, rel=1e-9)
    for guest in room.guests.values():
        given = load(guest.released)
        assert all(torch.equal(given[k], v) for k, v in found.released.state_dict().items())


@pytest.mark.parametrize("settings", [SETTINGS, HIDDEN])
@pytest.mark.parametrize("way", ["silent", "error"])
def test_a_client_that_is_lost_in_a_round_and_comes_back_changes_nothing(settings, way):
    room, lost = Room(guests()), []

    def lose(room, node, kind, fields):
        if kind == "model" and fields["round"] == 2 and not lost:
            lost.append(node)
            room.gone[node] = way
            room.guests[30] = Guest(node - 10, lambda _: made_data(), dealt=True)

    room.before = lose
    told: list[str] = []
    found = meeting(room, settings, say=told.append).held()
    assert len(lost) == 1
    assert same(found.model, train(settings, made_data()).model)
    assert any("lost" in line or "in the place" in line for line in told)
    again = [node for node, kind, fields in room.sent if kind == "model" and fields["round"] == 2]
    assert 30 in again
    assert room.guests[30].released is not None


def test_a_training_that_diverges_ends_and_says_so():
    settings = dataclasses.replace(SETTINGS, scheme="fedavg", network="lenet", lr=1e6, rounds=9)
    with pytest.raises(SettingsError, match="smaller lr than"):
        meeting(Room(guests()), settings).held()


def test_after_a_loss_clients_hide_under_new_keys():
    room, lost = Room(guests()), []

    def lose(room, node, kind, fields):
        if kind == "model" and fields["round"] == 2 and node == 11 and not lost:
            lost.append(room.gone.setdefault(11, "silent"))
            room.guests[30] = Guest(1, lambda _: made_data(), dealt=True)

    room.before = lose
    meeting(room, HIDDEN).held()
    asked = [f for node, kind, f in room.sent if (node, kind) == (10, "model") and f["round"] == 2]
    assert len(asked) == 2  # the other client's update is asked for anew as well
    assert asked[0]["keys"] != asked[1]["keys"]
    assert asked[0]["model"] == asked[1]["model"]


def test_the_servers_secret_is_not_among_what_it_sends():
    room = Room(guests())
    secret = 987654321987
    found = dataclasses.replace(meeting(room), secret=secret).held()
    assert not same(found.model, train(SETTINGS, made_data()).model)
    said = [text for _, kind, fields in room.sent if kind == "hello" for text in fields.values()]
    assert said
    assert all(str(secret) not in text for text in said)


def test_a_client_that_stays_away_is_not_waited_for_for_ever():
    with pytest.raises(DataError, match="client 1 is not there"):
        meeting(Room(guests(1)), patience=1.0).held()


def test_two_programs_with_one_number_do_not_take_turns():
    two = [*guests(2), Guest(0, lambda _: made_data(), dealt=True)]
    room = Room(two)
    meeting(room).held()
    asked = {node for node, kind, _ in room.sent if kind == "model"}
    assert asked == {11, 12}  # the later one stays


@pytest.mark.parametrize(
    ("number", "data", "words"),
    [
        (1, made_data(side=12), r"shape is \[3, 12, 12\], there \[3, 8, 8\]"),
        (7, None, "This is client 7; the server wants 0 to 1"),
    ],
)
def test_what_goes_wrong_at_a_client_is_told_at_both_ends(number, data, words):
    guest = Guest(number, lambda _: data or made_data(), dealt=True)
    with pytest.raises(DataError, match=words):
        meeting(Room([*guests(1), guest])).held()
    assert guest.failure is not None


def test_a_model_before_the_settings_is_refused():
    guest = guests(1)[0]
    assert "before the settings" in guest.answer("model", {"model": b"", "round": 1})["error"]


def test_facts_are_json_and_tell_no_example():
    facts = json.loads(json.dumps(facts_of(made_data())))
    assert set(facts) == {"shape", "outputs", "classes", "mean", "std", "coding"}
