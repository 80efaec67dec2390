"""Errors a person can put right: each says what was expected, what came, what to do."""

import sys


class SemsimError(Exception):
    """Root of all errors: what was expected, what came, what to do, shown to people as it is."""


class UnknownNameError(SemsimError, KeyError):
    """A name that no registry entry has."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would print the repr


class SettingsError(SemsimError, ValueError):
    """A setting that a plug-in does not have, or a value it cannot take."""


class DataError(SemsimError):
    """Images or tables that are missing, broken or do not fit together."""


class PictureError(DataError):
    """An image that is missing or cannot be read here and now; a later try may succeed."""


class WeightsError(SemsimError):
    """A weight file that is missing or not the file it should be, or a library that is missing."""


class CheckpointError(SettingsError, WeightsError):
    """A checkpoint that another training left: no word of the training that finds it."""


class StoreError(SemsimError):
    """A database, or a store of pictures, that cannot be opened or does not answer."""


class AttackFailedError(SemsimError):
    """An attack that diverged. It has no image; the record says why."""


class TrainingFailedError(SettingsError):
    """A training that its settings do not allow: it diverged, or cannot end as they ask."""


class JobError(SemsimError):
    """A job folder that is missing or cannot be used."""


class StopRequestedError(SemsimError):
    """Request to stop a running job."""


class MissingExtraError(WeightsError, ModuleNotFoundError):
    """A part of the product whose libraries are not installed."""

    def __init__(self, part: str, extra: str) -> None:
        super().__init__(
            f'{part} needs libraries that are not installed: pip install "semsim-studio[{extra}]".'
        )


def foreign() -> str:
    """Return what to do where the index's own `semsim` lies among our files; "" elsewhere."""
    from importlib.metadata import Distribution

    ours = hasattr(sys.modules["semsim"], "PUBLIC")
    if ours and not any(Distribution.discover(name="semsim")):
        return ""
    told = "Another project's semsim is or was installed among the files of SemSim Studio."
    return f"{told} Install only semsim-studio, in a new environment."
