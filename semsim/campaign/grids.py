"""Campaigns that a user can begin with: a first look, the demo's grid, and the papers'."""

from semsim.campaign.plan import Campaign
from semsim.defences import STRATEGIES
from semsim.targets.train_settings import TrainSettings

FIRST_LOOK = Campaign(
    name="first-look",
    datasets=("symbols",),
    architectures=("cnn4:activation=silu",),
    strategies=("none", "noise"),
    attacks=("prior:fast",),
    images=6,
    train=TrainSettings(epochs=48, batch_size=32, lr=0.01, until=0.3),
)
# As the built-in study on symbols, where three strategies have longer trainings: `campaign.demo`.
DEMO_GRID = Campaign(
    name="demo",
    datasets=("symbols",),
    architectures=("cnn4:activation=silu", "cnn4:activation=relu"),
    strategies=tuple(STRATEGIES["paper"]),
    attacks=("invgrad:fast", "prior:fast"),
    images=12,
    train=TrainSettings(epochs=48, batch_size=32, lr=0.01, until=0.65),
)
# Table 3 of the SemSim paper on its first data set: 14 targets, 600 images each.
PAPER_GRID = Campaign(
    name="paper",
    datasets=("cifar100",),
    architectures=("resnet20-4", "convnet8"),
    strategies=tuple(STRATEGIES["paper"]),
    attacks=("invgrad:paper",),
    images=600,
    train=TrainSettings(epochs=200),
)
