"""`semsim-studio …`: what the pages do, from a terminal."""

import semsim
from semsim.base.commands import Late, command_line

COMMANDS = {
    "audit": Late(
        "semsim.cli.audit",
        "audit",
        "Print c(M) of a network layer by layer, what it means, and what small changes would do.",
    ),
    "campaign": Late(
        "semsim.cli.campaign", "app", "A grid of targets and attacks, on many machines."
    ),
    "cases": Late(
        "semsim.cli.cases",
        "cases",
        "Draw one reconstruction for each way people and a metric can judge, and what both say.",
    ),
    "compare": Late(
        "semsim.cli.compare",
        "compare",
        "Print how well each metric agrees with people; with --out write everything about it.",
    ),
    "datasets": Late(
        "semsim.cli.datasets", "app", "Data sets: which there are, and how to get them."
    ),
    "demo": Late("semsim.cli.demo", "app", "The built-in study."),
    "federated": Late(
        "semsim.cli.federated",
        "app",
        "Federated learning with a masked model, compared in one process or between machines.",
    ),
    "import": Late(
        "semsim.cli.imports",
        "app",
        "Import data published by others: images, votes, labels, scores.",
    ),
    "job": Late(
        "semsim.cli.job",
        "job",
        "Carry out or resume the job in a folder, which a page or another command made.",
    ),
    "judge": Late(
        "semsim.cli.judge",
        "app",
        "Classifiers that were never attacked: lists and metrics need them.",
    ),
    "learn": Late("semsim.cli.learn", "app", "Train SemSim, judge it, study it."),
    "report": Late(
        "semsim.cli.compare",
        "report",
        "Write one HTML file about the comparison, ready to go with a paper; it opens offline.",
    ),
    "reproduce": Late("semsim.cli.reproduce", "app", "Compute a paper's tables and figures again."),
    "score": Late(
        "semsim.cli.score",
        "score",
        "Score reconstructions against their originals; print a table and write the scores.",
    ),
    "split": Late("semsim.cli.split", "app", "Split inference: defences and model inversion."),
    "verdict": Late(
        "semsim.cli.verdict",
        "verdict",
        "Count on how many pictures of reconstruction sets attacks got more than a guess.",
    ),
    "weights": Late(
        "semsim.cli.score",
        "weights",
        "List the weight files metrics need, or fetch the named ones with --download.",
    ),
}

ABOUT = "What the pages do, from a terminal."
app = command_line(semsim.__version__, ABOUT, COMMANDS)
