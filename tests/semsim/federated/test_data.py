import pytest
import torch
from made_federated import made_images

from semsim.errors import DataError, UnknownNameError
from semsim.federated import of_images, of_table


def test_images_get_one_hot_targets_and_their_own_normalisation():
    images = made_images(9, 0)
    data = of_images(images, made_images(3, 1))
    assert data.input_shape == (3, 8, 8)
    assert data.outputs == 3
    assert torch.equal(data.train.targets.argmax(1), images.labels)
    assert data.train.targets.sum() == 9
    assert data.mean[1] == pytest.approx(images.images[:, 1].mean().item(), rel=1e-6)


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
