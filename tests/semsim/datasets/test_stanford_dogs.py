import numpy as np
import pytest
from made_pictures import blocky
from scipy.io import savemat

from semsim.base.errors import DataError
from semsim.datasets.stanford_dogs import StanfordDogs


def example(root):
    place = root / "stanford-dogs"
    breeds = ("n02085620-Chihuahua", "n02085782-Japanese_spaniel", "n02085936-Maltese_dog")
    for split, images in (("train", (1, 2, 3)), ("test", (4, 5, 6))):
        names, labels = [], []
        for label, breed in enumerate(breeds, start=1):
            for image in images:
                name = f"{breed}/{breed.partition('-')[0]}_{image}.jpg"
                blocky(place / "Images" / name, 10 * label + image)
                names.append(name)
                labels.append(label)
        cells = np.array(names, dtype=object)[:, None]
        table = {"file_list": cells, "labels": np.array(labels, dtype=np.uint8)[:, None]}
        savemat(place / f"{split}_list.mat", table)


def test_lists_say_the_split_and_folders_the_breed(tmp_path):
    example(tmp_path)
    data = StanfordDogs(root=str(tmp_path), size=16)
    assert data("train").classes == ("Chihuahua", "Japanese spaniel", "Maltese dog")
    assert data("test").labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert data("test").ids[:2] == ("stanford-dogs-n02085620_4", "stanford-dogs-n02085620_5")


def test_a_broken_list_is_named(tmp_path):
    example(tmp_path)
    path = tmp_path / "stanford-dogs/train_list.mat"
    for content in (b"not a table", b""):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"train_list\.mat"):
            StanfordDogs(root=str(tmp_path))("train")
    for names, labels in (
        (["../../secret/a.jpg"], [1]),
        (["n1-Pug/a.jpg", "n1-Pug/b.jpg"], [1]),
        (["n1-Pug/a.jpg"], [2]),
    ):
        table = {"file_list": np.array(names, dtype=object), "labels": np.array(labels)}
        savemat(path, table)
        with pytest.raises(DataError, match=r"train_list\.mat"):
            StanfordDogs(root=str(tmp_path))("train")
