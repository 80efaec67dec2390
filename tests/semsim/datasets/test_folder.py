import os

import pytest
from made_pictures import blocky
from PIL import Image

from semsim.base.errors import DataError, SettingsError
from semsim.datasets.folder import Folder
from semsim.datasets.on_disk import content_of
from semsim.datasets.symbols import Symbols


def example(root):
    for number, name in enumerate(("cat/a", "cat/b", "dog/a")):
        blocky(root / "train" / f"{name}.png", number, (16, 16))
        blocky(root / "test" / f"{name}.png", 10 + number, (16, 16))


def picture(path, colour=(10, 20, 30), size=(40, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


def test_reads_train_and_test_folders(tmp_path):
    picture(tmp_path / "train/cat/a.png", (255, 0, 0))
    picture(tmp_path / "train/dog/b.jpg")
    picture(tmp_path / "test/dog/c.png", (0, 0, 255))
    data = Folder(root=str(tmp_path), size=16)
    train, test = data("train"), data("test")
    assert train.classes == test.classes == ("cat", "dog")
    assert train.images.shape == (2, 3, 16, 16)
    assert test.labels.tolist() == [1]
    assert test.images[0, :, 3, 3].tolist() == [0, 0, 1]
    assert test.ids == ("test-dog-c",)


def test_splits_a_plain_folder_by_name_and_keeps_the_split_when_images_come(tmp_path):
    for number in range(40):
        picture(tmp_path / f"cat/{number}.png")
    data = Folder(root=str(tmp_path), size=8, test_share=0.25)
    before = set(data("test").ids)
    assert set(data("train").ids).isdisjoint(before)
    assert len(data("train")) + len(before) == 40
    for number in range(40, 60):
        picture(tmp_path / f"dog/{number}.png")
    assert before <= set(data("test").ids)


def test_hidden_and_other_files_are_no_images(tmp_path):
    picture(tmp_path / "train/cat/a.png")
    picture(tmp_path / "test/cat/a.png")
    (tmp_path / "train/cat/notes.txt").write_text("x")
    (tmp_path / "train/cat/._a.png").write_text("x")
    assert len(Folder(root=str(tmp_path))("train")) == 1


def test_broken_image_is_named(tmp_path):
    (tmp_path / "train/cat").mkdir(parents=True)
    (tmp_path / "test").mkdir()
    (tmp_path / "train/cat/broken.png").write_bytes(b"not an image")
    with pytest.raises(DataError, match=r"broken\.png"):
        Folder(root=str(tmp_path))("train")


def test_missing_root_empty_folder_and_no_setting_each_say_so(tmp_path):
    with pytest.raises(SettingsError, match="root"):
        Folder()("train")
    with pytest.raises(DataError, match="nowhere"):
        Folder(root=str(tmp_path / "nowhere"))("train")
    with pytest.raises(DataError, match="No images"):
        Folder(root=str(tmp_path))("train")


def test_a_split_that_gets_none_of_few_images_says_what_to_change(tmp_path):
    picture(tmp_path / "cat/001.png")
    with pytest.raises(DataError) as told:
        Folder(root=str(tmp_path), test_share=0.0)("test")
    assert "No images for the split 'test' among 1 in" in str(told.value)
    assert "test_share" in str(told.value)
    (tmp_path / "train").mkdir()
    (tmp_path / "test").mkdir()
    with pytest.raises(DataError, match="test/<class>"):
        Folder(root=str(tmp_path))("test")


@pytest.mark.parametrize(
    ("first", "second"), [("cat/001.jpg", "cat/001.png"), ("a-b/c.png", "a/b-c.png")]
)
def test_two_files_with_one_id_are_refused(tmp_path, first, second):
    for name in (first, second):
        picture(tmp_path / name)
    with pytest.raises(DataError, match="would both be called") as told:
        Folder(root=str(tmp_path), test_share=0.0)("train")
    assert all(str(tmp_path / name) in str(told.value) for name in (first, second))


def add(root):
    picture(root / "train/cat/b.png")


def add_class(root):
    picture(root / "test/ant/a.png")


def remove(root):
    (root / "train/dog/a.png").unlink()


def replace_by_another_size(root):
    picture(root / "train/cat/a.png", size=(90, 70))


def replace_later(root):
    path = root / "train/cat/a.png"
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1_000_000_000))


@pytest.mark.parametrize("change", [add, add_class, remove, replace_by_another_size, replace_later])
def test_the_content_tells_of_every_change(tmp_path, change):
    for name in ("train/cat/a", "train/dog/a", "test/cat/a"):
        picture(tmp_path / f"{name}.png")
    data = Folder(root=str(tmp_path))
    before = data.content()
    assert content_of(data) == before == Folder(root=str(tmp_path), size=8).content() != ""
    (tmp_path / "train/cat/notes.txt").write_text("x")
    assert data.content() == before
    change(tmp_path)
    assert data.content() != before


def test_what_is_not_there_or_built_in_has_no_content(tmp_path):
    assert Folder().content() == Folder(root=str(tmp_path / "nowhere")).content() == ""
    assert content_of(Symbols()) == ""


def test_a_file_that_leads_nowhere_is_left_to_who_reads_it(tmp_path):
    picture(tmp_path / "cat/a.png")
    before = Folder(root=str(tmp_path)).content()
    (tmp_path / "cat/b.png").symlink_to(tmp_path / "gone.png")
    assert Folder(root=str(tmp_path)).content() not in ("", before)


def test_hidden_folders_are_no_classes(tmp_path):
    for name in (".thumbnails/a", "__MACOSX/a", "cat/a", "dog/a"):
        picture(tmp_path / f"{name}.png")
    data = Folder(root=str(tmp_path), size=8, test_share=0.0)("train")
    assert data.classes == ("cat", "dog")
    assert len(data) == 2


@pytest.mark.parametrize("place", ["{}", "train/{}"])
def test_a_name_that_is_not_utf8_is_to_be_changed(tmp_path, place):
    for split in ("train", "test") if "train" in place else ():
        picture(tmp_path / split / "cat/a.png")
    picture(tmp_path / place.format("cat") / os.fsdecode(b"caf\xe9.png"))
    data = Folder(root=str(tmp_path), test_share=0.0)
    assert data.content()
    with pytest.raises(DataError, match=r"caf\\udce9.png cannot be read: .* rename it"):
        data("train")


def test_a_partly_transparent_picture_is_named(tmp_path):
    picture(tmp_path / "train/disc/a.png")
    picture(tmp_path / "test/disc/a.png")
    icon = Image.new("RGBA", (12, 12), (0, 0, 0, 0))
    icon.paste((0, 0, 0, 255), (2, 2, 9, 9))
    icon.save(tmp_path / "train/disc/icon.png")
    with pytest.raises(DataError, match=r"icon\.png is partly transparent"):
        Folder(root=str(tmp_path), size=12)("train")


def test_a_name_too_long_for_the_files_of_a_set_is_refused_in_either_split(tmp_path):
    picture(tmp_path / "test/cat/a.png")
    picture(tmp_path / "train/cat" / f"{'图' * 63}.png")
    data = Folder(root=str(tmp_path), size=8)
    assert len(data("train").ids[0].encode()) == 199
    picture(tmp_path / "train/cat" / f"{'图' * 64}.png")
    for split in ("train", "test"):
        with pytest.raises(DataError, match=r"图\.png.* takes 202 bytes.* room for 200; shorten"):
            data(split)


def test_pictures_of_a_kind_that_is_not_read_are_named(tmp_path, caplog):
    for split in ("train", "test"):
        picture(tmp_path / split / "cat/a.png")
    (tmp_path / "train/cat/b.GIF").write_bytes(b"GIF89a")
    Folder(root=str(tmp_path))("train")
    assert "cat/b.GIF is a picture of a kind that is not read" in caplog.text
