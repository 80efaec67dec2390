"""Tiny data sets in the layouts of the real ones, filled with noise."""

import pickle
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat
from torchvision.datasets import CIFAR100


def picture(path, number, size=(20, 28)):
    """A blocky picture, different for each number, as JPEG or PNG by its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    colours = np.random.default_rng(number).integers(0, 256, (4, 3, 3), dtype=np.uint8)
    Image.fromarray(colours).resize(size, Image.Resampling.NEAREST).save(path)


def folder(root: Path) -> None:
    for number, name in enumerate(("cat/a", "cat/b", "dog/a")):
        picture(root / "train" / f"{name}.png", number, (16, 16))
        picture(root / "test" / f"{name}.png", 10 + number, (16, 16))


def cifar100(root: Path, labels=(0, 2, 1, 0, 1, 2)) -> dict[str, np.ndarray]:
    """Three classes; returns the pixels of each split, (N, 32, 32, 3) uint8."""
    place = root / CIFAR100.base_folder
    place.mkdir(parents=True)
    pixels = {}
    for seed, split in enumerate(("train", "test")):
        planes = np.random.default_rng(seed).integers(0, 256, (len(labels), 3072), dtype=np.uint8)
        names = [f"{number}.png" for number in range(len(labels))]
        table = {"data": planes, "fine_labels": list(labels), "filenames": names}
        (place / split).write_bytes(pickle.dumps(table, protocol=2))
        pixels[split] = planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    names = {"fine_label_names": ["apple", "bear", "cup"], "coarse_label_names": ["things"]}
    (place / "meta").write_bytes(pickle.dumps(names, protocol=2))
    return pixels


def trust_made_cifar100(monkeypatch) -> None:
    """Torchvision takes only files of the right checksum; ours have none to compare with."""
    monkeypatch.setattr(CIFAR100, "train_list", [["train", None]])
    monkeypatch.setattr(CIFAR100, "test_list", [["test", None]])
    monkeypatch.setattr(CIFAR100, "meta", {**CIFAR100.meta, "md5": None})


def caltech101(root: Path) -> None:
    place = root / "caltech101" / "101_ObjectCategories"
    for number, name in enumerate(("ant", "BACKGROUND_Google", "beaver", "cup")):
        for image in range(1, 6):
            picture(place / name / f"image_{image:04d}.jpg", 10 * number + image)


def imagenette(root: Path) -> None:
    for number, wnid in enumerate(("n01440764", "n02102040", "n02979186")):
        for split in ("train", "val"):
            for image in range(3):
                name = f"{wnid}_{split}_{image}.JPEG"
                picture(root / "imagenette2-160" / split / wnid / name, 10 * number + image)


def celeba(root: Path) -> None:
    """People 7, 3 and 12 with four images each, and person 5 with one."""
    people = [7, 3, 12, 7, 5, 3, 7, 12, 12, 3, 3, 7, 12]
    lines = []
    for number, person in enumerate(people, start=1):
        picture(root / "celeba" / "img_align_celeba" / f"{number:06d}.jpg", number, (18, 22))
        lines.append(f"{number:06d}.jpg {person}\n")
    (root / "celeba" / "identity_CelebA.txt").write_text("".join(lines))


def stanford_dogs(root: Path) -> None:
    place = root / "stanford-dogs"
    breeds = ("n02085620-Chihuahua", "n02085782-Japanese_spaniel", "n02085936-Maltese_dog")
    for split, images in (("train", (1, 2, 3)), ("test", (4, 5, 6))):
        names, labels = [], []
        for label, breed in enumerate(breeds, start=1):
            for image in images:
                name = f"{breed}/{breed.partition('-')[0]}_{image}.jpg"
                picture(place / "Images" / name, 10 * label + image)
                names.append(name)
                labels.append(label)
        cells = np.array(names, dtype=object)[:, None]
        table = {"file_list": cells, "labels": np.array(labels, dtype=np.uint8)[:, None]}
        savemat(place / f"{split}_list.mat", table)


MAKERS = {
    "folder": folder,
    "cifar100": cifar100,
    "caltech101": caltech101,
    "imagenette": imagenette,
    "celeba": celeba,
    "stanford-dogs": stanford_dogs,
}
