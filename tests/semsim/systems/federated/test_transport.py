import pytest
import torch

from semsim.base.errors import DataError
from semsim.systems.federated.transport import Message, Transport, numbers_in, pack, unpack


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
