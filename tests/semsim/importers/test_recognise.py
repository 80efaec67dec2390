"""A folder, a zip or a table of any known layout, recognised, shown and kept."""

import gc
import gzip
import json
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from helpers import ROOT
from typer.testing import CliRunner

from semsim.base.errors import DataError
from semsim.base.progress import silent
from semsim.base.sets.imports import places_of
from semsim.base.sets.reader import read_set
from semsim.cli.imports import app
from semsim.importers import AUTO, IMPORTERS, archives, import_plan, plan_import
from semsim.importers.import_folder import carry_out


def zipped(folder, path, wrap="drop"):
    """`folder` as a zip with one more folder around it, and what a file manager leaves."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in sorted(folder.rglob("*")):
            if one.is_file():
                archive.write(one, f"{wrap}/{one.relative_to(folder)}")
        archive.writestr(f"__MACOSX/{wrap}/._1.png", b"x")
    return path


@pytest.fixture
def drop(tmp_path, draw):
    """Two attacks on two models, originals apart by class; one picture has no original."""
    root = tmp_path / "drop"
    for image, kind in enumerate(("cat", "dog", "cow")):
        draw(root / f"originals/{kind}/{image}.png", image)
        for n, model in enumerate(("invgrad/net", "invgrad/other", "prior/net")):
            draw(root / model / kind / f"{image}_rec.png", 10 * image + n + 50)
    draw(root / "invgrad/net/stray.png", 7)
    return root


@pytest.mark.parametrize("kind", IMPORTERS)
def test_every_layout_is_recognised_and_reads_as_its_own_importer_reads_it(kind, example):
    source = example(kind)
    own, plan = plan_import(kind, source, "n"), plan_import(AUTO, source, "n")
    assert plan.kind == kind
    assert plan.found.counts == own.found.counts
    assert set(plan.refusals) == set(IMPORTERS) - {kind}
    assert all(plan.refusals.values())


def test_several_models_and_attacks_in_one_drop(drop, tmp_path):
    source = zipped(drop, tmp_path / "drop.zip")
    plan = plan_import(AUTO, source, "mine")
    found = {(one.attack, one.model): one for one in plan.found.sets}
    assert list(found) == [("invgrad", "net"), ("invgrad", "other"), ("prior", "net")]
    assert {one.classes for one in found.values()} == {("cat", "cow", "dog")}
    assert [str(one) for one in plan.found.unread] == [
        "image stray of net: no original in the source"
    ]
    text = plan.text()
    assert "net by invgrad on unknown: 3 of 3 pairs, 6×6 pixels, 3 classes (cat, cow, dog)" in text
    assert "Not taken: train-with-ori: " in text
    assert str(plan.held[0].folder) not in text
    places = places_of("mine", tmp_path / "data")
    carry_out(plan, places)
    kept = [read_set(places.sets / one.folder) for one in plan.found.sets]
    assert [(len(one.pairs), one.run["attack"]["name"]) for one in kept] == [
        *((3, "invgrad"), (3, "invgrad"), (3, "prior"))
    ]


def test_a_drop_of_two_sizes_says_of_each_set_what_becomes_of_it(tmp_path, draw):
    root = tmp_path / "drop"
    for n in range(2):
        draw(root / f"originals/{n}.png", n)
        draw(root / f"small/{n}.png", n + 5)
        draw(root / f"enlarged/{n}.png", n + 5, (9, 9))
        draw(root / f"wide/originals/w{n}.png", n, (8, 8))
        draw(root / f"wide/w{n}.png", n + 5, (8, 8))
    words = [AUTO, str(root), "--data-dir", str(tmp_path / "data"), "--yes"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1, done.output  # something was left out
    assert "small by unknown on unknown: 2 of 2 pairs, 6×6 pixels" in done.output
    assert "wide by unknown on unknown: 2 of 4 pairs, 8×8 pixels" in done.output
    why = "its pictures are of different sizes: original 6×6, reconstruction 9×9"
    assert f"Note: Nothing of enlarged can be used: {why}.\n" in done.output
    assert f"  image 1 of enlarged: {why}\n" in done.output
    kept = sorted(path.parent.name for path in tmp_path.rglob("data/runs/drop/*/run.json"))
    assert kept == ["small", "wide"]
    sizes = {
        one: read_set(tmp_path / f"data/runs/drop/{one}").run["dataset"]["size"] for one in kept
    }
    assert sizes == {"small": [6, 6], "wide": [8, 8]}


def test_what_was_unpacked_goes_with_the_plan(drop, tmp_path):
    plan = plan_import(AUTO, zipped(drop, tmp_path / "drop.zip"), "mine")
    folder = plan.held[0].folder
    assert folder.is_dir()
    del plan
    gc.collect()
    assert not folder.exists()


def test_what_a_killed_import_unpacked_goes_with_the_next_and_of_a_living_one_stays(drop, tmp_path):
    source, room = zipped(drop, tmp_path / "drop.zip"), tmp_path / "data/uploads"
    program = (
        "import os, sys; from pathlib import Path; from semsim.importers.archives import unpack;"
        "held = unpack(Path(sys.argv[1]), print, Path(sys.argv[2]));"
        "print(held.folder, flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", program, str(source), str(room)]
    killed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    left = Path(killed.stdout.splitlines()[-1])
    assert left.parent == room
    assert any(left.iterdir())
    held = archives.unpack(source, silent, room)
    assert not left.exists()
    archives.sweep(room)  # as at the start of a second server
    assert any(held.folder.iterdir())
    del held
    gc.collect()
    assert list(room.iterdir()) == []


def test_a_path_that_no_disk_takes_is_left_out_by_name(drop, tmp_path):
    path = zipped(drop, tmp_path / "drop.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("/".join(["deep" * 20] * 60) + "/cat.png", b"x")
    plan = plan_import(AUTO, path, "mine")
    assert any("too deep" in one.why and one.where.endswith("cat.png") for one in plan.found.unread)
    assert plan.found.sets


def test_where_nobody_reads_it_every_importer_says_why(tmp_path):
    (tmp_path / "odd.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError) as error:
        plan_import(AUTO, tmp_path / "odd.csv", "n")
    for kind in IMPORTERS:
        assert f"  {kind}: " in str(error.value)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({"../out.png": b"x"}, "leads out of it"),
        ({"/etc/out.png": b"x"}, "leads out of it"),
        ({"a\\..\\..\\out.png": b"x"}, "leads out of it"),
        ({"big.csv": bytes(archives._PUT_OFF + 1)}, "no pictures shrink so much"),
        ({f"{n}.png": b"x" for n in range(archives.MOST_PICTURES + 1)}, "20,001 pictures"),
    ],
    ids=["up", "root", "backslashes", "bomb", "many"],
)
def test_an_archive_that_could_do_harm_is_refused(tmp_path, entries, why):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(DataError, match=why):
        plan_import(AUTO, tmp_path / "bad.zip", "n")


def sparse_zip(path, files):
    """A zip that says it holds `files`, their bytes by name; zeros before it take no space."""
    with path.open("wb") as file:
        file.truncate(sum(files.values()))
    with zipfile.ZipFile(path, "a") as archive:
        for name in files:
            archive.writestr(name, b"x")
        for info in archive.infolist():
            info.file_size = files[info.filename]
    return path


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"net/1.png": archives.MOST_BYTES + 1}, "4,000,000,001 bytes; at most 4,000,000,000 are"),
        (
            {f"net/{n}.png": 300_000_000 for n in range(14)},
            "4,200,000,000 bytes; at most 4,000,000,000 are",
        ),
        (
            {f"net/{n}.png": 1 for n in range(archives.MOST_PICTURES + 1)},
            "20,001 pictures; at most 20,000 are",
        ),
        (
            {f"{n}.csv": 1 for n in range(2 * archives.MOST_PICTURES + 1)},
            "40,001 files; at most 40,000 are",
        ),
    ],
    ids=["a file too large", "files too large", "too many pictures", "too many files"],
)
def test_a_zip_of_more_than_is_imported_at_once_leaves_nothing_behind(
    tmp_path, monkeypatch, files, says
):
    temporary, data = tmp_path / "temporary", tmp_path / "data"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    path = sparse_zip(tmp_path / "large.zip", files)
    told = CliRunner().invoke(app, [AUTO, str(path), "--yes", "--data-dir", str(data)])
    said = " ".join(told.output.split())
    assert told.exit_code == 2
    assert f"large.zip holds {says} imported at once. Import a part of them at a time." in said
    assert not data.exists()
    assert not list(temporary.iterdir())


def test_a_zip_of_as_much_as_is_imported_at_once_is_not_too_large(tmp_path):
    path = sparse_zip(tmp_path / "large.zip", {"net/1.png": archives.MOST_BYTES})
    with pytest.raises(DataError) as error:  # it lies: one byte is all there is
        plan_import(AUTO, path, "n")
    assert "at once" not in str(error.value)


def test_a_folder_of_one_picture_or_one_byte_more_is_refused_before_any_is_opened(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("semsim.importers.import_plan.read_picture", None)
    many, large = tmp_path / "many", tmp_path / "large"
    (many / "net").mkdir(parents=True)
    for number in range(archives.MOST_PICTURES + 1):
        (many / "net" / f"{number}.png").touch()
    with pytest.raises(DataError, match="20,001 pictures; at most 20,000 are imported at once"):
        plan_import(AUTO, many, "n")
    large.mkdir()
    with (large / "1.png").open("wb") as file:
        file.truncate(archives.MOST_BYTES + 1)  # takes no space
    with pytest.raises(DataError, match="4,000,000,001 bytes; at most 4,000,000,000 are"):
        plan_import(AUTO, large, "n")


@pytest.mark.parametrize(
    "names",
    [
        # Folders are classes, and no picture is in two of them.
        lambda n: (f"k{n % 6}/{n}_0_ori.png", f"k{n % 6}/{n}_0_rec.png"),
        lambda n: (f"originals/{n}.png", f"k{n}/{n}.png"),
        lambda n: (f"{n}/{n}_0_ori.png", f"{n}/{n}_0_rec_0_{n + 1}.png"),
    ],
    ids=["model-folders", "variant-folders", "train-with-ori"],
)
def test_folders_that_are_no_models_are_not_crossed_with_every_picture(
    tmp_path, draw, monkeypatch, names, request
):
    for number in range(12):
        for name in names(number):
            draw(tmp_path / name, number + len(name))
    importer = IMPORTERS[request.node.callspec.id]
    assert importer(tmp_path, "n", silent).counts["failed or missing"] > 50
    monkeypatch.setattr(import_plan, "MOST_PAIRS", 70)
    with pytest.raises(DataError, match=r"taken for models .* Are they classes"):
        importer(tmp_path, "n", silent)


def test_links_encryption_and_broken_archives_are_refused(tmp_path):
    path = tmp_path / "bad.zip"
    link = zipfile.ZipInfo("link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match="leads out of it"):
        plan_import(AUTO, path, "n")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.png", b"x" * 100)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"x" * 100, b"y" * 100))  # its checksum is of another content
    with pytest.raises(DataError, match="not a readable archive"):
        plan_import(AUTO, path, "n")
    path.write_bytes(whole[:-30])  # cut off on the way
    with pytest.raises(DataError, match=r"bad\.zip is not a readable archive .* pack it again"):
        plan_import(AUTO, path, "n")
    flags = bytearray(whole)
    flags[whole.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(flags)
    with pytest.raises(DataError, match="is encrypted"):
        plan_import(AUTO, path, "n")


def test_names_that_no_disk_takes_are_left_out_and_the_rest_is_read(drop, tmp_path):
    path, picture = zipped(drop, tmp_path / "drop.zip"), next(drop.rglob("*.png")).read_bytes()
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("drop/originals/cat/" + "照" * 86 + ".png", picture)
        archive.writestr("drop/mo\ndel/cat/0_rec.png", picture)
        archive.writestr("drop/originals/cat/file.png", picture)
        archive.writestr("drop/originals/cat/FILE.png/within.png", picture)
    found = plan_import(AUTO, path, "n").found
    assert (
        found.counts["reconstructions"]
        == plan_import(AUTO, drop, "n").found.counts["reconstructions"]
    )
    left = {one.why: one.where for one in found.unread}
    assert "照" in left["its name is too long for a disk here: shorten it"]
    assert left["its name holds a control character, such as a line break: rename it"]
    assert left["the archive has a file for its folder"].endswith("FILE.png/within.png")


def test_a_huge_picture_is_left_out(drop, draw, monkeypatch):
    monkeypatch.setenv("SEMSIM_MAX_MEGAPIXELS", "0.0001")
    draw(drop / "prior/net/cat/0_rec.png", 1, (11, 11))
    plan = plan_import(AUTO, drop, "n")
    (left,) = [one.why for one in plan.found.unread if "0 of net" in one.where]
    assert "is too large" in left


def test_the_command_shows_the_plan_and_asks(drop, tmp_path):
    words = [AUTO, str(drop), "--data-dir", str(tmp_path / "data")]
    shown = CliRunner().invoke(app, words, input="n\n")
    assert shown.exit_code == 1
    assert "Keep this?" in shown.output
    assert "image stray of net" in shown.output
    assert not (tmp_path / "data").exists()
    dry = CliRunner().invoke(app, [*words, "--dry-run"])
    assert "Keep this?" not in dry.output
    assert not (tmp_path / "data").exists()
    kept = CliRunner().invoke(app, [*words, "--yes", "--dataset", "pets"])
    assert kept.exit_code == 1, kept.output  # something was left out
    folders = sorted(path.name for path in (tmp_path / "data/runs/drop").iterdir())
    assert folders == ["import.json", "invgrad__net", "invgrad__other", "prior__net"]
    assert read_set(tmp_path / "data/runs/drop/prior__net").run["dataset"]["name"] == "pets"


def test_the_command_matches_originals_that_lie_apart(drop, tmp_path):
    (drop / "originals").rename(tmp_path / "clean")
    with zipfile.ZipFile(tmp_path / "clean.zip", "w") as archive:
        for one in sorted((tmp_path / "clean").rglob("*.png")):
            archive.write(one, one.relative_to(tmp_path))
        archive.writestr("clean/more.zip", b"x")
    data = ("--data-dir", str(tmp_path / "data"), "--yes")
    alone = CliRunner().invoke(app, [AUTO, str(drop), *data])
    assert alone.exit_code == 2
    for number, apart in enumerate((tmp_path / "clean", tmp_path / "clean.zip")):
        words = [AUTO, str(drop), "--originals", str(apart), "--name", f"n{number}", *data]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 1, done.output  # a picture has no original
        assert "image stray of net: no original in the source" in done.output
        assert ("unpack it first" in done.output) == (apart.suffix == ".zip")
        kept = read_set(tmp_path / f"data/runs/n{number}/prior__net")
        assert sorted(kept.pairs["class_name"]) == ["cat", "cow", "dog"]


def test_originals_that_lie_apart_may_be_named_from_where_one_is(drop, tmp_path, monkeypatch):
    (drop / "originals").rename(tmp_path / "clean")
    monkeypatch.chdir(tmp_path)
    plan = plan_import(AUTO, drop, "n", {"originals": Path("clean")})
    assert plan.found.counts["reconstructions"] == 9
    (made,) = carry_out(plan, places_of("n", tmp_path / "data"))
    record = json.loads((made / "import.json").read_text())
    assert record["settings"]["originals"] == "clean"


def test_a_colon_in_a_name_leads_nowhere_and_a_drive_does(drop, tmp_path):
    path = zipped(drop, tmp_path / "drop.zip", wrap="run 12:30:05")
    assert plan_import(AUTO, path, "n").found.counts["reconstructions"] == 9
    path = zipped(drop, tmp_path / "drop.zip", wrap="C:")
    with pytest.raises(DataError, match="leads out of it"):
        plan_import(AUTO, path, "n")


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tgz", "tar.xz", "tar.bz2"])
def test_a_tar_is_read_as_its_folder_is(tmp_path, draw, ending):
    for folder in ("originals", "m1"):
        draw(tmp_path / f"s/{folder}/1.png")
    mode = {"tar": "w", "tgz": "w:gz"}.get(ending, f"w:{ending[4:]}")
    with tarfile.open(tmp_path / f"s.{ending}", mode) as packed:
        packed.add(tmp_path / "s", "s")
    plan = plan_import(AUTO, tmp_path / f"s.{ending}", "s", {})
    assert [one.model for one in plan.found.sets] == ["m1"]
    assert plan.complete


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
@pytest.mark.parametrize("name", ["a/1.png"])
def test_a_tar_that_leads_elsewhere_is_refused(tmp_path, kind, name):
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, "/etc/passwd"
    with tarfile.open(tmp_path / "s.tar", "w") as packed:
        packed.addfile(entry)
    with pytest.raises(DataError, match=r"leads out of it. Refused"):
        plan_import(AUTO, tmp_path / "s.tar", "s", {})


@pytest.mark.parametrize("name", ["../1.png", "/tmp/1.png"])
def test_a_tar_with_a_path_out_of_it_is_refused(tmp_path, name):
    with tarfile.open(tmp_path / "s.tgz", "w:gz") as packed:
        packed.addfile(tarfile.TarInfo(name))
    with pytest.raises(DataError, match=r"leads out of it. Refused"):
        plan_import(AUTO, tmp_path / "s.tgz", "s", {})
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize("name", ["s.7z", "s.RAR", "s.tar.zst", "votes.csv.gz"])
def test_other_archives_are_to_be_unpacked_first(tmp_path, name):
    (tmp_path / name).write_bytes(b"?" * 100)
    with pytest.raises(DataError, match=f"{name} is an archive of a kind .* Unpack it first"):
        plan_import(AUTO, tmp_path / name, "s", {})


def test_a_zip_whose_names_are_composed_otherwise_is_matched(tmp_path, draw):
    draw(tmp_path / "a.png")
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as packed:
        for folder, name in (("originals", "\u00e9"), ("m1", "E\u0301")):
            packed.write(tmp_path / "a.png", f"{folder}/{name}.png")
    plan = plan_import(AUTO, tmp_path / "s.zip", "s", {})
    assert (plan.found.counts["reconstructions"], plan.complete) == (1, True)


@pytest.mark.parametrize("name", ["s.zip", "s"])
def test_a_tar_is_one_whatever_it_is_called(tmp_path, draw, name):
    for folder in ("originals", "m1"):
        draw(tmp_path / f"o/{folder}/1.png")
    with tarfile.open(tmp_path / name, "w:gz") as packed:
        packed.add(tmp_path / "o", "./o")
    assert plan_import(AUTO, tmp_path / name, "s", {}).complete


def test_an_archive_of_nothing_but_an_archive_says_so(tmp_path):
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as packed:
        packed.writestr("inner.zip", b"PK")
    with pytest.raises(DataError, match=r"inner.zip: an archive in the archive: unpack it first"):
        plan_import(AUTO, tmp_path / "s.zip", "s", {})


@pytest.mark.parametrize("name", ["s.tgz", "s.bin"])
def test_a_packed_tar_that_was_cut_off_is_no_traceback(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(b"x" * 100)[:-9])
    with pytest.raises(DataError, match=r"not a readable archive|No importer reads"):
        plan_import(AUTO, tmp_path / name, "s", {})
