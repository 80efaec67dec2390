import pytest
import torch

from semsim.base.errors import DataError
from semsim.systems.federated.transport import (
    Agreement,
    Message,
    Transport,
    as_numbers,
    numbers_in,
    occasion_of,
    pack,
    summed,
    unpack,
)


def message(kind, number, tensors):
    return Message(kind=kind, round=number, client=0, payload=pack(tensors))


def test_tensors_survive_the_wire():
    tensors = {"g/a": torch.randn(3, 4, dtype=torch.float64).T, "b": torch.arange(3.0)}
    again = unpack(pack(tensors))
    assert again.keys() == tensors.keys()
    assert all(torch.equal(again[name], value) for name, value in tensors.items())
    assert numbers_in(pack(tensors)) == 15


def test_bytes_are_counted_by_direction_and_rounds_are_kept_on_demand():
    heard = []
    transport = Transport(tap=heard.append, keep=frozenset({2}))
    sent = [
        message("model", 1, {"w": torch.zeros(5)}),
        message("update", 1, {"w": torch.zeros(7)}),
        message("update", 2, {"w": torch.zeros(9)}),
    ]
    assert [transport.send(one) for one in sent] == [one.payload for one in sent]
    assert transport.down == len(sent[0].payload)
    assert transport.up == len(sent[1].payload) + len(sent[2].payload)
    assert transport.kept == [sent[2]]
    assert heard == sent


def test_broken_bytes_are_named():
    with pytest.raises(DataError, match="not a readable"):
        unpack(b"nonsense")


DIGITS = 40
ONE = occasion_of(1, b"the model")


def agreed(count):
    sides = [Agreement(number) for number in range(count)]
    for side in sides:
        side.agree([other.public for other in sides])
    return sides


def updates(count, size=500):
    rng = torch.Generator().manual_seed(count)
    return [
        {
            "g": torch.randn(size, generator=rng, dtype=torch.float64),
            "beta": torch.randn(3, 4, generator=rng, dtype=torch.float64),
        }
        for _ in range(count)
    ]


def zeros():
    return {"g": torch.zeros(4000, dtype=torch.float64)}


@pytest.mark.parametrize("count", [2, 3, 5])
def test_masks_sum_to_zero_exactly(count):
    hidden = [side.hidden(zeros(), DIGITS, ONE) for side in agreed(count)]
    total = summed(hidden, DIGITS, torch.float64)
    assert torch.equal(total["g"], zeros()["g"])
    short = summed(hidden[1:], DIGITS, torch.float64)  # one client's answer never came
    assert (short["g"] != 0).all()


def test_the_sum_is_that_of_the_updates():
    own = updates(3)
    hidden = [s.hidden(u, DIGITS, ONE) for s, u in zip(agreed(3), own, strict=True)]
    total = summed(hidden, DIGITS, torch.float64)
    for name in own[0]:
        assert hidden[0][name].shape == own[0][name].shape
        expected = sum(update[name] for update in own)
        assert (total[name] - expected).abs().max() <= 3 * 2.0**-41  # each is rounded once


def test_a_masked_number_is_uniform_whatever_the_update():
    """Of 4000 draws each of the 64 bits is set in half, within five standard deviations."""
    large = {"g": torch.full((4000,), 1e5, dtype=torch.float64)}
    for update in (zeros(), large):
        words = agreed(2)[0].hidden(update, DIGITS, ONE)["g"]
        for bit in range(64):
            share = ((words >> bit) & 1).double().mean().item()
            assert abs(share - 0.5) < 5 * 0.5 / 4000**0.5, bit


def test_no_two_sums_share_a_mask():
    side = agreed(2)[0]
    again = [side.hidden(zeros(), DIGITS, ONE)["g"] for _ in range(2)]
    assert torch.equal(again[0], again[1])  # asked again for the same, it says nothing new
    for other in (occasion_of(2, b"the model"), occasion_of(1, b"another model")):
        assert (side.hidden(zeros(), DIGITS, other)["g"] != again[0]).all()


def test_who_holds_the_public_keys_alone_cannot_draw_the_masks():
    """A server that plays any client with a key of its own gets other secrets."""
    sides = agreed(3)
    keys = [side.public for side in sides]
    true = sides[0].hidden(zeros(), DIGITS, ONE)["g"]
    for number in range(3):
        server = Agreement(number)
        server.agree([*keys[:number], server.public, *keys[number + 1 :]])
        assert (server.hidden(zeros(), DIGITS, ONE)["g"] != true).all()


def test_clients_that_agree_anew_cancel_again():
    sides = agreed(3)
    sides[1] = Agreement(1)  # lost, and back without its old key
    for side in sides:
        side.agree([other.public for other in sides])
    hidden = [side.hidden(zeros(), DIGITS, ONE) for side in sides]
    assert torch.equal(summed(hidden, DIGITS, torch.float64)["g"], zeros()["g"])


def test_keys_that_cannot_be_are_refused():
    one, other = Agreement(0), Agreement(1)
    with pytest.raises(DataError, match="2 clients or more"):
        one.agree([one.public])
    with pytest.raises(DataError, match="2 clients or more"):
        one.agree([one.public, one.public])
    with pytest.raises(DataError, match="client 0's own"):
        one.agree([other.public, one.public])
    with pytest.raises(DataError, match="not one of X25519"):
        one.agree([one.public, bytes(32)])
    with pytest.raises(DataError, match="before they send"):
        one.hidden(zeros(), DIGITS, ONE)


def test_numbers_that_do_not_fit_are_refused():
    side = agreed(2)[0]
    for wrong in (2.0**21, -(2.0**21), float("nan"), float("inf")):
        with pytest.raises(DataError, match=r"hide numbers below 2\.1e\+06"):
            side.hidden({"g": torch.tensor([wrong])}, DIGITS, ONE)
    assert as_numbers({"g": torch.tensor([-3 << DIGITS])}, DIGITS, torch.float32)["g"].item() == -3
