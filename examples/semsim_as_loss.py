"""A filter that people should see less through, trained against a SemSim.

python -m examples.semsim_as_loss [CHECKPOINT]

The filter changes pictures before they leave a device. It is rewarded for the distance that SemSim
sees and charged for the squared error of pixels. Take a SemSim of your own that beats its controls:
what the one that comes with the product rewards is little more than what pixels say.
"""

import sys

import torch
from torch import nn

import semsim
from semsim.images import read_images

PICTURES = semsim.demo("silu-none-invgrad") / "originals"
STEPS, PRICE = 20, 30.0


def main(checkpoint: str = "checkpoints/demo") -> None:
    torch.manual_seed(0)
    pictures = read_images(sorted(PICTURES.glob("*.png")))
    loss = semsim.SemSimLoss(checkpoint)
    guard = nn.Conv2d(3, 3, 5, padding=2)
    nn.init.dirac_(guard.weight)  # at first it changes next to nothing
    steps = torch.optim.Adam(guard.parameters(), lr=0.01)
    for step in range(STEPS + 1):
        seen = guard(pictures).clamp(0, 1)
        apart, error = loss(seen, pictures), (seen - pictures).square().mean()
        if step % 10 == 0:
            print(f"step {step:3}: SemSim {apart.item():.3f}, squared error {error.item():.4f}")
        steps.zero_grad()
        (PRICE * error - apart).backward()
        steps.step()


if __name__ == "__main__":
    main(*sys.argv[1:2])
