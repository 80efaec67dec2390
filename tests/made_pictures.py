"""Pictures as files, as a zip, and as files that went up and were looked at."""

import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image

from semsim.base.errors import DataError
from semsim.cli.job import do
from semsim.importers import uploads
from semsim.importers.import_job import ImportOrder, queue_look


def blocky(path, number, size=(20, 28)):
    """A blocky picture, different for each number, as JPEG or PNG by its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    colours = np.random.default_rng(number).integers(0, 256, (4, 3, 3), dtype=np.uint8)
    Image.fromarray(colours).resize(size, Image.Resampling.NEAREST).save(path)


def fill(folder: Path, side: int = 0) -> Path:
    """Three originals by class and what two models gave back of them; noise of `side` pixels."""
    for number, kind in enumerate(("cat", "dog", "cow")):
        for place in (f"originals/{kind}", "sharp", "blurred"):
            path = folder / place / f"{number}.png"
            if not side:
                blocky(path, number + len(place), (24, 24))
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng(number).integers(0, 256, (side, side, 3), np.uint8)
            Image.fromarray(noise).save(path)
    (folder / "weights.pt").write_text("not sent")
    (folder / ".hidden.png").write_text("not sent")
    return folder


def packed(folder: Path) -> Path:
    """The same as a zip."""
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for one in sorted(folder.rglob("*.p*")):
            archive.write(one, one.relative_to(folder.parent))
    return path


def looked_at(path: Path, data: Path) -> tuple[str, str]:
    """A zip that went up and was looked at, as (id of the upload, id of the look)."""
    content, root = path.read_bytes(), uploads.folder_of(data)
    sent = uploads.append(root, uploads.begin(root, path.name, len(content)).id, 0, content)
    given = {"source": sent.file, "name": path.stem, "uploads": (sent.id,)}
    order = ImportOrder(data=data, checkpoints=data / "checkpoints", **given)
    job = queue_look(order, data / "jobs")
    with suppress(DataError):  # what cannot be read was looked at, too
        do(job)
    return sent.id, job.id
