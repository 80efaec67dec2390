"""Named settings of attacks: what the papers say, what public code does, and what is quick.

"paper": the attack's own paper. "code": public code that runs it; for InvGrad that of the SemSim
authors, whose reconstructions the product compares with, else that of the attack's authors.
"fast": fewer steps for a first look on one processor core, and not for publication. InvGrad's
weight of total variation there is the best of seven on training images (`benchmarks.attacks`), so
that nobody takes what smoothing alone gains for the gain of another attack.
Settings that a preset does not name are the attack's defaults. Of iDLG and CAFE only the code was
read, so their "paper" is DLG's length, and the code's, in turn; DLG's 1200 steps are those usually
quoted.
"""

from collections.abc import Mapping
from typing import Any

PRESETS: Mapping[str, Mapping[str, dict[str, Any]]] = {
    "invgrad": {
        "paper": {"steps": 4800, "lr": 0.1, "tv": 1e-4, "restarts": 1, "start": "normal"},
        "code": {"steps": 8000, "lr": 0.1, "tv": 1e-4, "restarts": 1, "start": "normal"},
        "fast": {"steps": 500, "lr": 0.1, "tv": 2e-2, "restarts": 1, "start": "grey"},
    },
    "dlg": {
        "paper": {"steps": 1200, "lr": 1.0, "stop_below": 0.0},
        "code": {"steps": 300, "lr": 1.0, "stop_below": 1e-6},
        "fast": {"steps": 40, "lr": 1.0, "stop_below": 1e-6},
    },
    "idlg": {
        "paper": {"steps": 1200, "lr": 1.0, "stop_below": 0.0},
        "code": {"steps": 300, "lr": 1.0, "stop_below": 1e-6},
        "fast": {"steps": 40, "lr": 1.0, "stop_below": 1e-6},
    },
    # Both from the examples of the authors' code: an attacker who knows label and statistics, as
    # the paper finds that earlier attacks assume, and one who knows neither. There the code
    # optimises the label with the image; for one image the sign rule is exact, and used instead.
    "gradattack": {
        "paper": {
            "steps": 10_000,
            "tv": 0.1,
            "statistics": "leaked",
            "statistics_weight": 0.005,
            "label": "known",
            "batch_norm": "train",
        },
        "code": {
            "steps": 10_000,
            "tv": 0.05,
            "statistics": "running",
            "statistics_weight": 0.001,
            "label": "inferred",
        },
        "fast": {"steps": 500, "tv": 0.05, "start": "grey"},
    },
    # Our own attack has neither paper nor other code: "paper" takes three times the steps of
    # "code", the default, and "augmented" looks for the shift of a random crop or of ATS.
    "prior": {
        "paper": {"steps": 600, "restarts": 1},
        "code": {"steps": 200, "restarts": 1},
        "fast": {"steps": 80, "restarts": 1},
        "augmented": {"steps": 200, "max_shift": 16, "border": "any"},
    },
    "rgap": {"paper": {}, "code": {}, "fast": {"steps": 500}},
    "copa": {"paper": {"denoise": 0.15}, "code": {}, "fast": {"steps": 8, "inner": 100}},
    # Past the paper: "paper" takes more steps.
    "copa-prior": {"paper": {"steps": 3}, "code": {}, "fast": {"steps": 1, "inner": 40}},
    # The code's numbers of rounds and step size. It also descends in the first two steps, and
    # looks for the labels, which here the server holds.
    "cafe": {
        "paper": {"steps": 20_000, "lr": 0.01},
        "code": {"steps": 20_000, "lr": 0.01},
        "fast": {"steps": 300, "lr": 0.05},
    },
}
