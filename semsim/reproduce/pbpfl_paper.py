"""What the PBPFL paper prints (Yang et al. 2020, arXiv:2002.09843)."""

from collections.abc import Mapping

CLIENTS = (1, 5, 10)
Cells = Mapping[tuple[str, str], tuple[float, float, float]]  # network and scheme → by `CLIENTS`

# Table 2: squared error, of bank marketing (UBMD) and of retina images (ABD).
TABLE_2: Mapping[str, Cells] = {
    "bank marketing": {
        ("mlp-3", "FedAvg-MSE"): (0.059, 0.079, 0.097),
        ("mlp-3", "PBPFL"): (0.060, 0.078, 0.097),
        ("mlp-5", "FedAvg-MSE"): (0.059, 0.079, 0.100),
        ("mlp-5", "PBPFL"): (0.059, 0.077, 0.101),
        ("mlp-7", "FedAvg-MSE"): (0.058, 0.086, 0.113),
        ("mlp-7", "PBPFL"): (0.059, 0.082, 0.114),
    },
    "retina images": {
        ("resnet20", "FedAvg-MSE"): (0.048, 0.085, 0.117),
        ("resnet20", "PBPFL"): (0.047, 0.088, 0.114),
    },
}

# Table 4: accuracy in per cent, of skin images (LDC).
TABLE_4: Cells = {
    ("resnet20", "FedAvg-CE"): (66.90, 64.93, 63.38),
    ("resnet20", "FedAvg-MSE"): (66.24, 61.68, 61.44),
    ("resnet20", "PBPFL"): (66.23, 61.74, 61.27),
}

# Table 5: seconds of PP, LFP, LBP and MU, ResNet56.
TABLE_5: Mapping[str, Mapping[str, float]] = {
    "FedAvg": {"perturb": 0.0, "forward": 2.19, "backward": 88.89, "update": 89.11},
    "PBPFL": {"perturb": 3.66, "forward": 2.20, "backward": 225.86, "update": 92.39},
}
