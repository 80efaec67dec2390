"""Which software made a result: the versions that go into the record of it."""

import functools
import platform
from importlib.metadata import PackageNotFoundError, version


def software_versions(*libraries: str) -> dict[str, str]:
    """Versions of what determines every result, and of the named `libraries`."""
    names = ("torch", "torchvision", "numpy", "scikit-image", "pytorch-metric-learning", *libraries)
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


@functools.cache  # a file has to be found and parsed for it; every score of a set asks again
def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
