"""Sum what an installation holds on disk, by the lists of files of the distributions it needs.

python -m benchmarks.sizes [--results sizes]

Run it in an environment that has the studio. Files of bytecode do not count.
"""

import argparse
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks import keeping
from benchmarks.keeping import Finds

PACKAGE = "semsim-studio"
CUDA = ("nvidia", "cuda", "triton")  # how names of what torch brings for a GPU begin


def needed(name: str, extras: Iterable[str] = ()) -> set[str]:
    """Return the names of the distributions that `name` with its `extras` installs, itself too."""
    found: set[tuple[str, str]] = set()
    open_ = [(name, extra) for extra in ("", *extras)]
    while open_:
        one = open_.pop()
        if one in found:
            continue
        found.add(one)
        for text in distribution(one[0]).requires or ():
            asked = Requirement(text)
            if asked.marker is None or asked.marker.evaluate({"extra": one[1]}):
                open_ += [(canonicalize_name(asked.name), extra) for extra in ("", *asked.extras)]
    return {one for one, _ in found}


def gigabytes(names: Iterable[str]) -> float:
    """Return the sum of the sizes of these distributions' files, in GB, to two decimals."""
    files = [Path(str(one.locate())) for name in names for one in distribution(name).files or ()]
    kept = (path for path in files if path.suffix != ".pyc" and path.is_file())
    return round(sum(path.stat().st_size for path in kept) / 1e9, 2)


def main() -> None:
    """Print and keep the sizes of the package, of the studio, and of what torch brings."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    keeping.add_option(options)
    given = options.parse_args()
    try:
        package, studio = needed(PACKAGE), needed(PACKAGE, ["studio"])
    except PackageNotFoundError as error:
        options.error(f"{error.name} is not installed here: pip install -e '.[studio]' first")
    cuda = {name for name in package if name.startswith(CUDA)}
    with Finds(given.results) as finds:
        finds.figure("package", gigabytes(package), "GB")
        finds.figure("torch", gigabytes({"torch"}), "GB")
        finds.figure("cuda", gigabytes(cuda), "GB")
        finds.figure("without-cuda", gigabytes(package - cuda), "GB")
        finds.figure("studio", gigabytes(studio), "GB")


if __name__ == "__main__":
    main()
