"""The long table that crowd-kit aggregates: one row an answer.

Source: crowd-kit's documentation, "data formats": columns worker, task, label.
"""

from pathlib import Path

from annotation.formats.plain import write_csv
from annotation.formats.study_data import StudyData
from annotation.texts import counted

COLUMNS = {"annotator": "worker", "item": "task", "answer": "label"}
KEPT = ("kind", "simulated", "voter")  # to leave decoys out, and what is not from people


def write_crowd_kit(data: StudyData, path: Path) -> str:
    """Write the counted votes as CSV with worker, task, label, kind, simulated and voter."""
    table = data.counted[[*COLUMNS, *KEPT]].rename(columns=COLUMNS)
    write_csv(table, path)
    return counted(len(table), "answer")
