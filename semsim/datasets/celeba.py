"""CelebA with identities as classes, in the folders that torchvision's download makes."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from semsim.base.errors import DataError
from semsim.base.registry import setting
from semsim.base.table_files import read_plain
from semsim.datasets.on_disk import fetched
from semsim.datasets.photographs import ImageFile, Photographs, balanced_split


@dataclass(frozen=True, kw_only=True)
class CelebA(Photographs):
    """Faces of well-known people (Liu et al. 2015), the middle square of the aligned images.

    A class is an identity with at least `min_images` images, in the order of their numbers. The
    authors' splits keep identities apart, so that no person could be recognised. Here each identity
    is shuffled by `seed`, its first `test_per_class` images are the test split and the rest the
    training split. SemSim has 476 identities too, but which is not known.

    Attributes:
        root: Folder of data sets; the files lie in `celeba` below it.
        size: Pixels of a side.
        classes, per_class: Only the first so many identities, and images of each in either split;
            none takes all. Files of other images are not opened.
    """

    name: ClassVar[str] = "celeba"
    task: ClassVar[str] = "pair"
    about: ClassVar[str] = "10,177 people, 202,599 images at 178×218, 1.4 GB"
    home: ClassVar[str] = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
    place: ClassVar[str] = "celeba"

    classes: int | None = setting(476, least=1)
    min_images: int = setting(30, least=1)
    test_per_class: int = setting(5, least=1)
    seed: int = setting(0, least=0)

    def present(self) -> bool:
        return self._identities.is_file() and (self.folder / "img_align_celeba").is_dir()

    def download(self) -> None:
        from torchvision.datasets import CelebA as Download  # slow to import, seldom needed

        fetched(self, lambda root: Download(root, target_type="identity", download=True))

    def listed(self, split: str) -> tuple[list[str], list[ImageFile]]:
        of_person = self._files_of_people()
        people = sorted(person for person in of_person if len(of_person[person]) >= self.min_images)
        people = people[: self.classes]
        if not people:
            raise DataError(f"Nobody in {self._identities} has {self.min_images} images.")
        names = [f"person_{person:05d}" for person in people]
        return names, [
            entry
            for label, person in enumerate(people)
            for entry in self._of(label, person, of_person[person], split)
        ]

    @property
    def _identities(self) -> Path:
        return self.folder / "identity_CelebA.txt"

    def _files_of_people(self) -> dict[int, list[str]]:
        of_person = defaultdict(list)
        for number, line in enumerate(read_plain(self._identities, DataError).splitlines(), 1):
            words = line.split()
            if len(words) != 2 or not words[1].isdigit() or Path(words[0]).name != words[0]:
                raise DataError(
                    f"{self._identities}, line {number}: expected '<file> <number>', got {line!r}."
                )
            of_person[int(words[1])].append(words[0])
        return of_person

    def _of(self, label: int, person: int, files: list[str], split: str) -> list[ImageFile]:
        files = sorted(files)
        # By the person's own number: other limits give nobody another split.
        chosen = balanced_split(len(files), self.test_per_class, split, (self.seed, person))
        pictures = self.folder / "img_align_celeba"
        return [
            ImageFile(path=pictures / files[place], label=label, id=Path(files[place]).stem)
            for place in chosen
        ]
