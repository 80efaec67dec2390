"""Of how many reconstructions their own original is the nearest, whatever their brightness.

python -m benchmarks.told_apart FOLDER...

Each FOLDER holds reconstruction sets. Near is a high correlation of grey values, Pearson's over all
pixels, with any sign: a negative shows what a picture shows, though SSIM, PSNR and the control of
the verdicts (`semsim.sets.control`) take it for worse than nothing. Guessing gets one right of a
set, and of 20 sets in one more than the column "95 % of guesses" says.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy import stats

from semsim.images import read_pixels
from semsim.sets.reader import read_set, set_folders
from semsim.terminal import text_table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    rows = []
    for folder in set_folders(parser.parse_args().folders):
        found = read_set(folder)
        pairs = found.pairs
        originals, rebuilt = (
            np.stack([_standard(Path(path)) for path in pairs[name]])
            for name in ("original", "reconstruction")
        )
        rows.append([str(found.run["name"]), *_told_apart(originals, rebuilt)])
    head = ["set", "pictures", "told apart", "chance", "95 % of guesses", "median r", "negatives"]
    print(text_table(head, rows))


def _standard(path: Path) -> np.ndarray:
    """(H · W,) grey values less their mean, of length 1; 0 where all are alike."""
    grey = read_pixels(path).mean(axis=-1).ravel()
    centred = grey - grey.mean()
    return np.asarray(centred / max(float(np.linalg.norm(centred)), 1e-9))


def _told_apart(originals: np.ndarray, rebuilt: np.ndarray) -> list[str]:
    """originals, rebuilt: (N, H · W) of `_standard` each, in one order."""
    r = rebuilt @ originals.T
    n, own = len(r), np.diag(r)
    right = int((np.abs(r).argmax(axis=1) == np.arange(n)).sum())
    guessed = int(stats.binom.ppf(0.95, n, 1 / n))
    median = float(np.median(np.abs(own)))
    return [str(n), str(right), "1", str(guessed), f"{median:.2f}", f"{np.mean(own < 0):.0%}"]


if __name__ == "__main__":
    main()
