"""Two folders with images of the same names: what three metrics say of each pair.

python -m examples.score_folders ORIGINALS RECONSTRUCTIONS
"""

import sys

import semsim


def main(originals: str, reconstructions: str) -> None:
    learned = semsim.SemSim.from_pretrained("checkpoints/demo")
    table = semsim.score((originals, reconstructions), ["psnr", "ssim", learned])
    print(table.drop(columns=["original", "reconstruction"]).to_string(index=False))
    # PSNR and SSIM fall and SemSim rises with what is lost.
    print(table.select_dtypes("number").corr(method="spearman").round(2).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:3])
