import pytest
import torch

from semsim.datasets.faces import FACES, Faces


def test_test_split_is_one_picture_a_face():
    test = Faces()("test")
    assert test.images.shape == (FACES, 3, 25, 25)
    assert test.labels.tolist() == list(range(FACES))
    assert torch.equal(test.images[:, 0], test.images[:, 1])  # grey


def test_training_copies_resemble_their_own_face_most():
    faces = Faces(train_per_face=4)
    train, test = faces("train"), faces("test")
    assert len(train) == 4 * FACES

    def normed(images):
        flat = images[:, 0].flatten(1)
        return torch.nn.functional.normalize(flat - flat.mean(1, keepdim=True), dim=1)

    both = torch.stack([test.images, test.images.flip(-1)])
    likeness = torch.stack([normed(train.images) @ normed(images).T for images in both]).amax(0)
    right = (likeness.argmax(1) == train.labels).float().mean()
    assert right > 0.6  # shifts of two pixels blur it; chance is 0.01


def test_same_seed_same_copies():
    assert torch.equal(
        Faces(train_per_face=2)("train").images, Faces(train_per_face=2)("train").images
    )


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="val"):
        Faces()("val")
