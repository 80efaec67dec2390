"""Data of a study at one moment, the one source of every format."""

from dataclasses import dataclass

import pandas as pd

from annotation.domain import Study, VoteStatus

STIMULUS_COLUMNS = (
    "item",
    "kind",
    "model",
    "attack",
    "image_id",
    "class_name",
    "original",
    "shown",
    "candidates",
)


UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class StudyData:
    """A study and its tables, all read in one transaction.

    Attributes:
        votes: One row a vote, whatever became of it.
        labels: One row a reconstruction.
        stimuli: One row an item of any kind, decoys too, with `STIMULUS_COLUMNS`; `candidates` is a
            list of class names, missing in the pair task. Images are absolute paths of PNG files.
        lists: What the candidate lists tell whoever sees only them, in sentences.
        licence: Of pictures and votes, in the hub's words; "unknown" where none was given.
    """

    study: Study
    votes: pd.DataFrame
    labels: pd.DataFrame
    stimuli: pd.DataFrame
    lists: tuple[str, ...] = ()
    licence: str = UNKNOWN

    @property
    def counted(self) -> pd.DataFrame:
        """The votes that count; at most one an item and annotator."""
        return self.votes[self.votes["status"] == VoteStatus.COUNTED]

    @property
    def decided(self) -> pd.DataFrame:
        """The labels on which a majority agrees."""
        return self.labels[self.labels["recognisable"].notna()]
