"""`semsim.compare`: does a metric rank models as people do? As `semsim-studio compare`."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from semsim.base.cli.terminal import DATA
from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.stats.analysis import DEFAULTS, AnalysisSettings
from semsim.comparison.compared import Compared
from semsim.comparison.frames import HowToCompare, compared_frames, read_table, whole_study
from semsim.metrics.base import described
from semsim.weights import CHECKPOINTS

Folder = str | Path


def compare(
    votes: pd.DataFrame | Folder,
    scores: pd.DataFrame | Folder,
    labels: pd.DataFrame | Folder | None = None,
    *,
    headline: str | None = None,
    higher_leaks: Sequence[str] = (),
    lower_leaks: Sequence[str] = (),
    settings: AnalysisSettings = DEFAULTS,
    unseen_by: str = "",
    match_ids: bool = False,
    checkpoints: Folder = CHECKPOINTS,
    data: Folder = DATA,
    report: Report = silent,
) -> Compared:
    """Judge every metric by how well it ranks models as people do; as `semsim-studio compare`.

    Each table is a frame, or a file that the command reads.

    How it is judged: rank correlation of what people and what a metric say of models, as Sun et al.
    2023; every other number is on the page "How a number is made". Returns the analysis: as text
    what the command prints, `agreement` one row a metric, `figures()`, `report(path)`,
    `write(folder)`, and every table in `analysis`.

    Args:
        votes: One row a vote, as a study exports them. At least the columns model, image_id,
            annotator and recognised (true or false); or answer in its place, which recognises where
            it is the true class, in the column class_name of the votes or labels. dataset and
            attack are needed where a model's name alone does not say which of several is meant.
        scores: What `semsim.score` returns: one row an image and metric, or one row an image and
            one column a metric, then with a column model.
        labels: One row a reconstruction, as a study exports them: where the pictures are, for
            report and figures, and given labels as human:<name>. None for votes alone.
        headline: Human score that models are ranked by, of `semsim.base.stats.verdict.RULES`; left
            out, the one the study's protocol fixed, else the majority.
        higher_leaks: Metrics of your own, by which of their values leak more.
        lower_leaks: As `higher_leaks`.
        settings: Numbers of resamples and their seed.
        unseen_by: Name of a SemSim, and only originals that it has not learned from count; "all"
            for all; left out, those that no SemSim with scores has learned from, if any.
        match_ids: Whether an image_id 7, 7.0 or 7.png of the scores is 007 where nothing else fits.
        checkpoints: Folder of weights, where SemSims say what they learned from.
        data: Folder of the studio, where scores of one's own are kept for a study.

    Raises:
        DataError: For absent columns and tables that do not fit.
        SettingsError: For metrics of unknown direction.
        UnknownNameError: For a headline that there is not.

    >>> import pandas as pd, semsim
    >>> rows = [(m, i, who) for m in "abcd" for i in range(3) for who in ("Ann", "Bob")]
    >>> votes = pd.DataFrame(rows, columns=["model", "image_id", "annotator"])
    >>> votes = votes.assign(recognised=votes["image_id"] < votes["model"].map("dcba".index))
    >>> scores = votes[["model", "image_id"]].drop_duplicates()
    >>> scores = scores.assign(psnr=scores["model"].map({"a": 30.0, "b": 24, "c": 22, "d": 9}))
    >>> semsim.compare(votes, scores).agreement[["metric", "n", "rho"]]
      metric  n  rho
    0   psnr  4  1.0
    """
    votes, scores = _table(votes), _table(scores)
    labels = None if labels is None else _table(labels)
    how = HowToCompare(
        checkpoints=Path(checkpoints),
        data=Path(data),
        settings=settings,
        headline=headline,
        higher=tuple(higher_leaks),
        lower=tuple(lower_leaks),
        unseen_by=unseen_by,
        match_ids=match_ids,
    )
    return compared_frames(whole_study(votes, scores, labels), scores, how, report)


def _table(given: pd.DataFrame | Folder) -> pd.DataFrame:
    if isinstance(given, str | Path):
        return read_table(Path(given))
    if not isinstance(given, pd.DataFrame):
        raise DataError(f"Give each table as a pandas frame or a path; got {described(given)}.")
    return given
