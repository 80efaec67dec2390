from dataclasses import replace

import pytest
import torch
from made_federated import made_data, made_images

from semsim.base.errors import DataError, SettingsError, UnknownNameError
from semsim.systems.federated.data import batch_of, deal, of_images, of_table
from semsim.systems.federated.settings import FederatedSettings


def test_images_get_one_hot_targets_and_their_own_normalisation():
    images = made_images(9, 0)
    data = of_images(images, made_images(3, 1))
    assert data.input_shape == (3, 8, 8)
    assert data.outputs == 3
    assert torch.equal(data.train.targets.argmax(1), images.labels)
    assert data.train.targets.sum() == 9
    assert data.mean[1] == pytest.approx(images.images[:, 1].mean().item(), rel=1e-6)


def test_a_channel_that_is_the_same_in_all_images_is_not_divided_by_zero():
    images = made_images(9, 0)
    images.images[:, 2] = 0.3
    data = of_images(images, replace(images, ids=images.ids[::-1]))
    assert data.std[2] == 1.0
    assert data.std[0] == pytest.approx(images.images[:, 0].std().item(), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "rows", "columns"), [("diabetes", 442, 10), ("breast-cancer", 569, 30)]
)
def test_tables_are_split_and_normalised_by_their_training_rows(name, rows, columns):
    data = of_table(name)
    assert len(data.train) + len(data.test) == rows
    assert len(data.test) == rows // 5
    assert data.input_shape == (columns,)
    normal = (data.train.inputs - torch.tensor(data.mean)) / torch.tensor(data.std)
    assert torch.allclose(normal.mean(0), torch.zeros(columns).double(), atol=1e-5)  # float32 mean
    assert data.train.labels is None
    assert torch.equal(of_table(name).test.inputs, data.test.inputs)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="same classes and size"):
        of_images(made_images(3, 0), made_images(3, 0, side=4))
    with pytest.raises(UnknownNameError, match="breast-cancer"):
        of_table("wine")


def shares(parts, labels):
    return [
        [sum(int(labels[i]) == c for i in part) / len(part) for c in range(3)] for part in parts
    ]


@pytest.mark.parametrize("split", ["iid", "dirichlet"])
def test_every_example_goes_to_exactly_one_client(split):
    train = made_data(count=90).train
    parts = deal(train, FederatedSettings(clients=4, split=split))
    assert len(parts) == 4
    assert sorted(index for part in parts for index in part) == list(range(90))


def test_a_small_alpha_makes_clients_differ_and_a_large_one_does_not():
    train = made_data(count=300).train
    for alpha, low, high in ((1e-6, 1.0, 1.0), (0.1, 0.7, 1.0), (1e4, 0.33, 0.4)):
        settings = FederatedSettings(clients=3, split="dirichlet", dirichlet_alpha=alpha)
        largest = max(max(row) for row in shares(deal(train, settings), train.labels))
        assert low <= largest <= high


def test_splits_depend_on_the_seed():
    train = made_data(count=30).train
    for split in ("iid", "dirichlet"):
        one, same, other = (
            deal(train, FederatedSettings(split=split, seed=seed)) for seed in (0, 0, 1)
        )
        assert one == same != other


def test_an_epoch_uses_each_example_once_with_a_short_last_batch():
    settings = FederatedSettings(batch_size=4)
    batches = [batch_of(10, step, 0, settings) for step in range(3)]
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert sorted(place for batch in batches for place in batch) == list(range(10))
    assert batch_of(10, 0, 1, settings) != batches[0]


def test_what_cannot_be_dealt_is_refused():
    with pytest.raises(SettingsError, match="there are 3"):
        deal(made_data(count=3).train, FederatedSettings(clients=4))
    with pytest.raises(SettingsError, match="Use 'iid'"):
        deal(of_table("diabetes").train, FederatedSettings(split="dirichlet"))
    uneven = FederatedSettings(split="dirichlet", dirichlet_alpha=1e-6, clients=8)
    with pytest.raises(SettingsError, match="larger dirichlet_alpha"):
        deal(made_data(count=9).train, uneven)
