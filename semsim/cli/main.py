"""`semsim-studio …`: what the pages do, from a terminal."""

import semsim
from semsim.base.cli.commands import Late, command_line
from semsim.systems import SYSTEMS

_GROUPS = {
    "campaign": "A grid of targets and attacks, on many machines.",
    "datasets": "Data sets: which there are, and how to get them.",
    "demo": "The built-in study.",
    "distractors": "Distractor models: classifiers that rank the wrong words of candidate lists.",
    "import": "Import data published by others: images, votes, labels, scores.",
    "people": "Public judgements of people, as studies to compare.",
    "reproduce": "Compute a paper's tables and figures again.",
    "train": "Train a SemSim and evaluate it.",
}
_ALONE = {
    "baseline-check": (
        "Count the images of reconstruction sets on which attacks beat the no-attack baseline."
    ),
    "compare": (
        "Print how well each metric agrees with people; with --out write everything about it."
    ),
    "examples": (
        "Draw one reconstruction for each way in which people and a metric can agree or differ."
    ),
    "job": "Carry out or resume the job in a folder, which a page or another command made.",
    "report": (
        "Write one HTML file about the comparison, ready to go with a paper; it opens offline."
    ),
    "score": "Score reconstructions against their originals; print a table and write the scores.",
    "weights": "List the weight files metrics need, or fetch the named ones with --download.",
}
# The module of a command that is not called as the command is.
_ELSEWHERE = {"import": "imports", "report": "compare", "weights": "score"}
_HERE = {
    name: Late(
        f"semsim.cli.{_ELSEWHERE.get(name, name.replace('-', '_'))}",
        name.replace("-", "_") if name in _ALONE else "app",
        text,
    )
    for name, text in {**_GROUPS, **_ALONE}.items()
}
_SYSTEMS = {
    name: Late(one.module("command"), "app" if one.group else name, one.about)
    for name, one in SYSTEMS.items()
}
COMMANDS = dict(sorted({**_HERE, **_SYSTEMS}.items()))

ABOUT = "Score, attack and compare reconstructions."
app = command_line(semsim.__version__, ABOUT, COMMANDS)
