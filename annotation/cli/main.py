"""`python -m annotation …`: studies from a terminal."""

import annotation
from annotation.cli.commands import Late, command_line

COMMANDS = {
    "studies": Late("study", "studies", "List all studies."),
    "create": Late(
        "study",
        "create",
        "Create a study from reconstruction sets, from a manifest, or as a file says.",
    ),
    "texts": Late(
        "study", "texts", "List every text that annotators read, as a study's file has them."
    ),
    "amend": Late(
        "study",
        "amend",
        "Change settings of a study: a new version of its protocol, stamped on the votes to come.",
    ),
    "protocol": Late(
        "study",
        "protocol",
        "List the versions of a study's protocol, and what its lists of words tell a guesser.",
    ),
    "simulate": Late(
        "study",
        "simulate",
        "Let simulated annotators answer a study that was created with --simulated.",
    ),
    "progress": Late("study", "progress", "Show how far a study is."),
    "export": Late("study", "export", "Write a study to a file or a new folder."),
    "labels": Late(
        "study", "labels", "Write the majority label of every reconstruction, one a row."
    ),
    "plan": Late(
        "planning",
        "app",
        "What a study will take: people, days and money, by a simulated crowd.",
    ),
    "backup": Late(
        "backups",
        "back_up",
        "Copy the database to a file, checked; people can go on labelling meanwhile.",
    ),
    "restore": Late(
        "backups",
        "restore",
        "Put a backup in the place of the database; stop the server first.",
    ),
    "annotators": Late(
        "annotators",
        "app",
        "The people of a study: list, pause, resume, exclude, include, erase, link them.",
    ),
    "accounts": Late(
        "accounts",
        "app",
        "Accounts of administrators and researchers: list, add, reset, disable, enable.",
    ),
}

ABOUT = "The human study: create studies, follow them, take the votes out."
app = command_line(annotation.__version__, ABOUT, COMMANDS, extra="studio")
