"""What one gradient of a classifier of your own gives away, with and without a defence.

python -m examples.attack_classifier FOLDER

Writes the original and what was made of it as PNG into FOLDER.
"""

import sys
from pathlib import Path

import torch
from torch import nn

import semsim
from semsim.images import read_image, write_png

PICTURE = semsim.demo("silu-none-invgrad") / "originals"
DEFENCES = ("none", "gradient-noise:std=0.01", "gradient-pruning:rate=0.9")


def main(folder: str) -> None:
    torch.manual_seed(0)
    image = read_image(sorted(PICTURE.glob("*.png"))[0])
    pixels = image.shape[1] * image.shape[2] // 4
    model = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2, padding=2),
        nn.Sigmoid(),
        nn.Flatten(),
        nn.Linear(8 * pixels, 10),
    )
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    write_png(image, out / "original.png")
    for defence in DEFENCES:
        found = semsim.attack(model, image, 3, "prior:steps=60", defence=defence)
        psnr = semsim.metrics.psnr(image[None], found.image[None]).item()
        write_png(found.image, out / f"{defence.partition(':')[0]}.png")
        print(f"{defence:26} PSNR {psnr:5.1f} dB")


if __name__ == "__main__":
    main(sys.argv[1])
