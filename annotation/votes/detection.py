"""Signal detection in the pair task: do people tell matches from decoys, and how readily say same?

A hit is "same" said of a reconstruction beside its own original, a false alarm "same" said of a
decoy. z(hits) - z(false alarms) takes an original with one other image as a yes-no design.
"""

import numpy as np
import pandas as pd
import scipy
from scipy.special import ndtri

from annotation.domain import StimulusKind
from annotation.votes.ballots import NO_VOTES, Ballots, few
from annotation.votes.rates import model_names
from semsim.base.stats.intervals import error, student

DETECTION_KINDS = (StimulusKind.RECONSTRUCTION.value, StimulusKind.DECOY.value)
EVERYBODY = "all votes"
DETECTION_COLUMNS = (
    "of",  # "all votes", "annotator", "model" or "stratum"
    "name",
    "n_matched",
    "hits",
    "n_decoys",
    "false_alarms",
    "d_prime",
    "d_prime_low",
    "d_prime_high",
    "criterion",
    "criterion_low",
    "criterion_high",
    "interval",  # how the intervals were made
    "reason",
)
_JACKKNIFE = "jackknife"
_VARIANCE = "Gourevitch-Galanter"


def detection_table(ballots: Ballots) -> pd.DataFrame:
    """d′ and criterion of all votes and by annotator, model, stratum; columns `DETECTION_COLUMNS`.

    `ballots` holds both `DETECTION_KINDS`. A stratum is the quality of what is shown within its
    model, by which decoys are drawn; votes without one are in no such row. Rates are corrected
    log-linearly, (hits + 0.5) / (n + 1), for every group (Hautus 1995), so that 0 and 1 have a z.
    Criterion is -(z(hits) + z(false alarms)) / 2: above 0 leans towards "different". The 95 %
    intervals are `student`, over the originals of matched items or of decoys, whichever are fewer.
    Where a raw rate is 0 or 1 no original can vary it: the error is at least that of Gourevitch and
    Galanter 1967, which takes votes as independent.
    """
    everybody = np.zeros(len(ballots.votes), dtype=int)
    models, model_of = np.unique(model_names(ballots.votes), return_inverse=True)
    stratum_of, strata = pd.factorize(ballots.votes["stratum"], sort=True)  # −1 without one
    tables = [
        _table(ballots, "all votes", [EVERYBODY], everybody),
        _table(ballots, "annotator", list(ballots.annotators), ballots.annotator),
        _table(ballots, "model", list(models), model_of),
        _table(ballots, "stratum", list(map(str, strata)), stratum_of),
    ]
    return pd.concat(tables, ignore_index=True)


def _table(ballots: Ballots, of: str, names: list[str], group: np.ndarray) -> pd.DataFrame:
    decoy = (ballots.votes["kind"] == StimulusKind.DECOY.value).to_numpy()
    same = ballots.votes["recognised"].to_numpy()
    cells = [
        _cells(ballots, group, len(names), kept)
        for kept in (~decoy, decoy, ~decoy & same, decoy & same)
    ]
    n_matched, n_decoys, hits, alarms = (ballots.weights @ cell for cell in cells)
    units = np.minimum(*((cell > 0).sum(axis=0) for cell in cells[:2]))
    d_prime, criterion = _d_prime(hits, n_matched, alarms, n_decoys)
    deviation = np.sqrt(_variance(hits[0], n_matched[0]) + _variance(alarms[0], n_decoys[0]))
    stuck = _stuck(hits[0], n_matched[0]) | _stuck(alarms[0], n_decoys[0])
    table = pd.DataFrame({"of": of, "name": names})
    table["n_matched"], table["hits"] = n_matched[0].astype(int), hits[0].astype(int)
    table["n_decoys"], table["false_alarms"] = n_decoys[0].astype(int), alarms[0].astype(int)
    # The criterion is half of a sum with the same two variances.
    for name, draws, spread in (
        ("d_prime", d_prime, deviation),
        ("criterion", criterion, deviation / 2),
    ):
        moved = error(draws, units)
        spread = np.where(stuck, np.fmax(moved, spread), moved)
        table[name] = draws[0]
        table[f"{name}_low"], table[f"{name}_high"] = student(draws[0], spread, units)
    table["reason"] = _reasons(n_matched[0], n_decoys[0], units)
    table["interval"] = np.where(stuck, _VARIANCE, _JACKKNIFE)
    table.loc[table["d_prime_low"].isna(), "interval"] = ""
    return table[list(DETECTION_COLUMNS)]


def _cells(ballots: Ballots, group: np.ndarray, n_groups: int, kept: np.ndarray) -> np.ndarray:
    """(O, G) how many of the `kept` (V,) votes each group has on each original."""
    n_originals = ballots.weights.shape[1]
    grouped = kept & (group >= 0)
    place = (ballots.original * n_groups + group)[grouped]
    counts = np.bincount(place, minlength=n_originals * n_groups)
    return counts.reshape(n_originals, n_groups)


def _d_prime(
    hits: np.ndarray, n_matched: np.ndarray, alarms: np.ndarray, n_decoys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """d′ and criterion, NaN where there are no matched items or no decoys."""
    both = (n_matched > 0) & (n_decoys > 0)
    z_hits = ndtri(np.where(both, _corrected(hits, n_matched), np.nan))
    z_alarms = ndtri(np.where(both, _corrected(alarms, n_decoys), np.nan))
    return z_hits - z_alarms, -(z_hits + z_alarms) / 2


def _corrected(count: np.ndarray, n: np.ndarray) -> np.ndarray:
    return (count + 0.5) / (n + 1)


def _variance(count: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Of z(rate), Gourevitch and Galanter 1967, at the corrected rate; infinite without items."""
    rate = _corrected(count, n)
    density = scipy.stats.norm.pdf(ndtri(rate))
    bound = np.full(len(n), np.inf)
    return np.divide(rate * (1 - rate), n * density**2, out=bound, where=n > 0)


def _stuck(count: np.ndarray, n: np.ndarray) -> np.ndarray:
    return (n > 0) & ((count == 0) | (count == n))


def _reasons(n_matched: np.ndarray, n_decoys: np.ndarray, units: np.ndarray) -> np.ndarray:
    return np.select(
        [(n_matched == 0) & (n_decoys == 0), n_decoys == 0, n_matched == 0],
        [
            NO_VOTES,
            "without votes on decoys nobody knows how often “same” is said wrongly",
            "there are no votes on matched pairs",
        ],
        few(units),
    )
