"""`semsim-studio study …`: studies from a terminal; and what is of the whole server."""

from functools import partial

import annotation
from semsim.base.cli.commands import Late, command_line

_study = partial(Late, "annotation.cli.study")
STUDY = {
    "list": _study("studies", "List all studies."),
    "create": _study(
        "create", "Create a study from reconstruction sets, from a manifest, or as a file says."
    ),
    "texts": _study("texts", "List every text that annotators read, as a study's file has them."),
    "amend": _study(
        "amend",
        "Change settings of a study: a new version of its protocol, stamped on the votes to come.",
    ),
    "protocol": _study(
        "versions",
        "List the versions of a study's protocol and the accuracy of no-image baselines.",
    ),
    "activity": _study(
        "activity", "List who did what to a study, or to all of them, the latest first."
    ),
    "simulate": _study(
        "simulate",
        "Let simulated annotators, or a vision-language model, answer a study made for them.",
    ),
    "progress": _study("progress", "Show how far a study is."),
    "export": _study("export", "Write a study to a file or a new folder."),
    "labels": _study("labels", "Write the majority label of every reconstruction, one a row."),
    "plan": Late(
        "annotation.cli.planning",
        "app",
        "People, days and money of a study, by a simulated crowd.",
    ),
    "annotators": Late(
        "annotation.cli.annotators",
        "app",
        "The people of a study: list, pause, resume, exclude, include, erase, link them.",
    ),
}
SERVER = {
    "accounts": Late(
        "annotation.cli.accounts",
        "app",
        "Accounts of administrators and researchers: list, add, reset, disable, enable.",
    ),
    "backup": Late(
        "annotation.cli.backups",
        "back_up",
        "Copy the database to a file, checked; people can go on labelling meanwhile.",
    ),
    "restore": Late(
        "annotation.cli.backups",
        "restore",
        "Put a backup in the place of the database; stop the server first.",
    ),
}

ABOUT = "The human study: create studies, follow them, take the votes out."
study = command_line(annotation.__version__, ABOUT, STUDY)
app = command_line(annotation.__version__, ABOUT, {"studies": STUDY["list"], **STUDY, **SERVER})
