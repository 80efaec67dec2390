"""Versions of the software that made a result, for the record of it."""

import functools
import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version

from semsim.base.storage.places import files_of


def software_versions(*libraries: str) -> dict[str, str]:
    """Versions of what determines every result, and of the named `libraries`."""
    names = ("torch", "torchvision", "numpy", "scikit-image", *libraries)
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


@functools.cache
def product_version() -> str:
    """Return the version of the product: 12 hex digits over code and data."""
    digest = hashlib.sha256()
    package = files_of("semsim")
    for path in sorted(one for one in package.rglob("*.*") if one.suffix in (".py", ".toml")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@functools.cache  # a file has to be found and parsed for it; every score of a set asks again
def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
