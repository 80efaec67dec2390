"""Effect on a result of leaving out one annotator's votes."""

from dataclasses import dataclass

import pandas as pd

from annotation.votes import aggregate


@dataclass(frozen=True, kw_only=True)
class ModelRate:
    """Share of one model's decided items whose majority recognised them; None if none is.

    Attributes:
        rating_before, rating_after: Of ratings the mean over items of their mean, by which models
            are ranked there; None where no annotator rated.
    """

    model: str
    before: float | None
    after: float | None
    decided_before: int
    decided_after: int
    rating_before: float | None = None
    rating_after: float | None = None

    @property
    def ranked_by(self) -> tuple[float | None, float | None]:
        """Values that the model is ranked by, as in `rates.rate_table`, before and after."""
        if self.rating_before is None:
            return self.before, self.after
        return self.rating_before, self.rating_after


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Effect of excluding an annotator; items are counted with decoys only in `n_short`."""

    annotator: str
    n_votes: int  # counted votes that would count no more
    n_short: int  # items that have all their votes now and would not
    n_flipped: int  # majority labels that would become the opposite
    n_undecided: int  # majority labels that would be lost
    models: tuple[ModelRate, ...]

    @property
    def ranking(self) -> str | None:
        """Change in the order of the models in words; None if it stays as it is."""
        sides = [model.ranked_by for model in self.models]
        if any(after is None and before is not None for before, after in sides):
            return "A model would have no decided item left, so it would have no rank."
        before, after = _ranks([one for one, _ in sides]), _ranks([one for _, one in sides])
        if before == after:
            return None
        moved = sum(one != other for one, other in zip(before, after, strict=True))
        return f"The ranking of the models would change: {moved} of {len(before)} would move."


def effect_of_excluding(annotator: str, votes: pd.DataFrame, labels: pd.DataFrame) -> Effect:
    """The effect of excluding `annotator` on `labels`, the labels that `votes` lead to.

    `votes` has item, annotator, recognised, status and votes_per_item, `labels` has
    `base.columns.LABEL_COLUMNS`. Only counted votes matter, so nothing would change for
    an annotator who is excluded already.
    """
    gone = (votes["annotator"] == annotator) & (votes["status"] == "counted")
    after = _labels(labels, votes[~gone])
    before = _labels(labels, votes)
    was, becomes = before["recognisable"], after["recognisable"]
    both = was.notna() & becomes.notna()
    return Effect(
        annotator=annotator,
        n_votes=int(gone.sum()),
        n_short=_n_short(votes, gone),
        n_flipped=int((was[both] != becomes[both]).sum()),
        n_undecided=int((was.notna() & becomes.isna()).sum()),
        models=tuple(
            _rate(str(model), before.loc[rows], after.loc[rows])
            for model, rows in before.groupby("model", sort=True).groups.items()
        ),
    )


def _labels(labels: pd.DataFrame, votes: pd.DataFrame) -> pd.DataFrame:
    per_item = int(labels["votes_per_item"].iloc[0]) if len(labels) else 1
    if aggregate.goes_by_names(votes):  # names that may depend on who is gone
        votes = aggregate.with_original_answers(votes, per_item)
    return aggregate.labels(labels, votes, votes_per_item=per_item)


def _n_short(votes: pd.DataFrame, gone: pd.Series) -> int:
    counted = votes[votes["status"] == "counted"]
    # One more, as of an item that was split, can be spared.
    just = counted.groupby("item").size() == counted.groupby("item")["votes_per_item"].first()
    return int(just.reindex(votes.loc[gone, "item"].unique()).sum())


def _rate(model: str, before: pd.DataFrame, after: pd.DataFrame) -> ModelRate:
    was, becomes = before["recognisable"], after["recognisable"]
    rated = "mean_rating" in before
    return ModelRate(
        model=model,
        before=_share(was),
        after=_share(becomes),
        decided_before=int(was.notna().sum()),
        decided_after=int(becomes.notna().sum()),
        rating_before=_share(before["mean_rating"]) if rated else None,
        rating_after=_share(after["mean_rating"]) if rated and "mean_rating" in after else None,
    )


def _share(values: pd.Series) -> float | None:
    """Their mean, rounded so that equal means are equal however they were summed; None of none."""
    known = values.dropna()
    return round(float(known.astype("float64").mean()), aggregate.DECIMALS) if len(known) else None


def _ranks(rates: list[float | None]) -> list[int | None]:
    """1 for the highest rate; equal rates share a rank, and no rate has none."""
    known = [rate for rate in rates if rate is not None]
    return [None if rate is None else 1 + sum(k > rate for k in known) for rate in rates]
