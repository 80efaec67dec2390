import pytest
from made_pictures import blocky

from semsim.base.errors import DataError, SettingsError
from semsim.base.registry import read_plugin
from semsim.datasets import DATASETS
from semsim.datasets.celeba import CelebA


def example(root):
    """People 7, 3 and 12 with four images each, and person 5 with one."""
    people = [7, 3, 12, 7, 5, 3, 7, 12, 12, 3, 3, 7, 12]
    lines = []
    for number, person in enumerate(people, start=1):
        blocky(root / "celeba" / "img_align_celeba" / f"{number:06d}.jpg", number, (18, 22))
        lines.append(f"{number:06d}.jpg {person}\n")
    (root / "celeba" / "identity_CelebA.txt").write_text("".join(lines))


def read(tmp_path, **settings):
    return CelebA(root=str(tmp_path), size=8, **{"min_images": 3, "test_per_class": 2, **settings})


def test_people_with_enough_images_are_the_classes(tmp_path):
    example(tmp_path)
    train, test = read(tmp_path)("train"), read(tmp_path)("test")
    assert train.classes == ("person_00003", "person_00007", "person_00012")
    assert train.labels.tolist() == test.labels.tolist() == [0, 0, 1, 1, 2, 2]
    of_three = {f"celeba-{number:06d}" for number in (2, 6, 10, 11)}
    assert {*train.ids[:2], *test.ids[:2]} == of_three
    assert len(read(tmp_path, min_images=1)("train").classes) == 4


def test_other_limits_leave_a_persons_split_as_it_is(tmp_path):
    example(tmp_path)
    of_twelve = read(tmp_path)("test").ids[4:]
    assert read(tmp_path, min_images=1, classes=4)("test").ids[-2:] == of_twelve


def test_nobody_with_enough_images_is_said(tmp_path):
    example(tmp_path)
    with pytest.raises(DataError, match="Nobody"):
        read(tmp_path, min_images=9)("train")


@pytest.mark.parametrize("line", ["000001.jpg", "000001.jpg seven", "../000001.jpg 7"])
def test_a_broken_list_is_named_with_its_line(tmp_path, line):
    example(tmp_path)
    path = tmp_path / "celeba/identity_CelebA.txt"
    path.write_text(f"000002.jpg 3\n{line}\n")
    with pytest.raises(DataError, match=r"identity_CelebA\.txt, line 2"):
        read(tmp_path)("train")


def test_none_in_words_takes_everybody():
    plugin = read_plugin(DATASETS, "celeba:classes=None,size=8")
    assert plugin.settings == {"classes": None, "size": 8}
    with pytest.raises(SettingsError, match="size must be a whole number"):
        read_plugin(DATASETS, "celeba:size=None")
