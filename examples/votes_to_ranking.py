"""Votes of a study → which metric ranks models as people do, with figures and a report.

semsim-studio study export STUDY --out votes.parquet
semsim-studio study labels STUDY --out labels.parquet
python -m examples.votes_to_ranking votes.parquet labels.parquet FOLDER
"""

import sys
from pathlib import Path

import pandas as pd

import semsim


def main(votes: str, labels: str, folder: str) -> None:
    said, shown = pd.read_parquet(votes), pd.read_parquet(labels)
    scores = semsim.score(shown, ["mse", "psnr", "ssim", "psnr-registered"])
    result = semsim.compare(said, scores, shown)
    print(result)
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    for figure in result.figures():
        figure.draw().savefig(out / f"{figure.stem}.png")
    result.report(out / "report.html")


if __name__ == "__main__":
    main(*sys.argv[1:4])
