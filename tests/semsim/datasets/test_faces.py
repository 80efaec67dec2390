import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.datasets.faces import FACES, FaceOrNot, Faces


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


def test_a_detector_learns_faces_it_is_not_tested_on_and_each_has_a_name():
    detector = FaceOrNot(train_per_picture=2)
    train, test = detector("train"), detector("test")
    assert (len(train), len(test)) == (320, 40)
    assert test.classes == ("face", "other")
    assert test.labels.tolist() == [0] * 20 + [1] * 20
    assert not set(train.subjects) & set(test.subjects)
    assert test.names == test.subjects
    assert (test.shown(0), test.shown(39)) == ("face_080", "other_099")
    assert test.pick([39, 0]).names == ("other_099", "face_080")
    assert torch.equal(test.images[:20], Faces()("test").images[80:])
    other = Faces()("test")
    assert (other.names, other.shown(3)) == (other.classes, "face_003")


def test_fewer_people_are_the_first_of_all_and_never_none():
    every, few = Faces(train_per_face=2), Faces(train_per_face=2, people=3)
    assert few("test").classes == every("test").classes[:3]
    assert torch.equal(few("test").images, every("test").images[:3])
    assert len(few("train")) == 6
    for people in (0, FACES + 1):
        with pytest.raises(SettingsError, match="people is 1 to 100"):
            Faces(people=people)
