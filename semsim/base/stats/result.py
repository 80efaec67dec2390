"""Parts of a comparison of metrics with people: settings in, tables out."""

from dataclasses import dataclass

import pandas as pd

from semsim.base.columns import TARGET_COLUMNS
from semsim.base.errors import SettingsError
from semsim.base.metric_spec import MetricSpec, is_control
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.human import title_of
from semsim.base.stats.measures import PEOPLE

# One row a model. `human` is the model's mean human score under the headline rule. For every
# metric there are four more columns: <name>, <name>:low, <name>:high, <name>:n_inf.
MODEL_COLUMNS = (
    *("dataset", "attack", "model", "label", "backbone"),
    *TARGET_COLUMNS,
    *("n_images", "n_decided", "n_undecided"),
    *("human", "human_low", "human_high"),
)
# One row a metric, the one that agrees best first. 95 % intervals over models: `bw` Bonett-Wright
# and `score`, which tables, figures and the terminal print, and `models`, a bootstrap. `images` is
# no such interval but the range of 95 % of the resamples of originals. `loo` leaves one model out;
# `loo_undefined` names those without which there is no ranking.
# `mark` says why a metric is below the others and leads nothing, "" of most.
# `p_kind` is "exact" or "Monte Carlo". `left_out` counts resamples without a ranking. Each kind
# has a column that says why it has no ends: `interval_undefined` for `bw` and `score`.
AGREEMENT_COLUMNS = (
    *("metric", "title", "mark", "n", "rho", "tau"),
    *("abs_rho", "abs_tau", "p_rho", "p_tau", "p_kind"),
    *("rho_bw_low", "rho_bw_high", "tau_score_low", "tau_score_high", "interval_undefined"),
    *("rho_models_low", "rho_models_high"),
    *("tau_models_low", "tau_models_high", "rho_images_low", "rho_images_high"),
    *("tau_images_low", "tau_images_high", "loo_rho_min", "loo_rho_max", "loo_tau_min"),
    *("loo_tau_max", "loo_model_min", "loo_model_max", "loo_undefined"),
    *("left_out_models", "left_out_images", "models_undefined", "images_undefined", "undefined"),
)
# One row a metric and backbone left out.
BACKBONE_COLUMNS = ("metric", "title", "left_out", "n", "rho", "tau", "undefined")
# One row a pair of metrics; `difference` is ρ of a minus ρ of b, its interval is 95 % over models,
# `p` is of equal ρ in the population of models, and `p_holm` is p after Holm.
# `interval_undefined` says why a difference has neither interval nor p.
DIFFERENCE_COLUMNS = (
    *("metric_a", "title_a", "metric_b", "title_b", "n", "difference", "low", "high"),
    *("p", "p_holm", "interval_undefined", "undefined"),
)
# One row a metric and scope: "pooled", "within model", "within original".
AUC_COLUMNS = (
    *("metric", "title", "scope", "auc", "low", "high", "n_positive", "n_negative", "n_groups"),
    "undefined",
)
RHO_COLUMNS = ("rho", "rho_low", "rho_high")  # further ones where people gave ratings
# One row a human score and metric.
RULE_COLUMNS = ("rule", "metric", "title", "n", "rho", "tau", "n_images", "n_left_out", "undefined")
# One row a model and measure ("people" or a metric): its rank, 1 leaks most, and its 95 % range
# under the cluster bootstrap.
STABILITY_COLUMNS = ("measure", "title", "label", "model_key", "rank", "low", "high")
# One row an image and metric of images: both as rank shares, 0 leaks least and 1 most.
DISAGREEMENT_COLUMNS = (*("metric", "row", "human", "value", "human_share", "metric_share", "gap"),)


def check_metric_name(name: str) -> None:
    """Raise `SettingsError` for a metric called as people are, or a column of models is."""
    if name in (PEOPLE, *MODEL_COLUMNS):
        raise SettingsError(
            f"No metric can be called {name}, as a column of the table of models is. Give it "
            f"another name, such as own-{name}."
        )


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings:
    """Settings that decide the numbers besides the data; the same ones give the same numbers.

    headline: the human score models are ranked by, see `semsim.base.stats.human.RULES`.
    bootstraps, permutations: how many resamples and, where an exact test is too long, shuffles.
    """

    headline: str = "majority"
    bootstraps: int = 1000
    permutations: int = 9999
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Correlation of annotators' rankings of the models with each other.

    rho, tau: mean over `n_splits` splits of the annotators into two groups of `sizes` people.
    n_models: the fewest models that a split ranks.
    rho_low, rho_high, tau_low, tau_high: 95 % over models, or None; interval_undefined says why.
    undefined: why there are no numbers, or None.
    """

    n_annotators: int = 0
    sizes: tuple[int, int] = (0, 0)
    n_splits: int = 0
    n_models: int = 0
    rho: float | None = None
    tau: float | None = None
    rho_low: float | None = None
    rho_high: float | None = None
    tau_low: float | None = None
    tau_high: float | None = None
    interval_undefined: str | None = None
    undefined: str | None = None


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """Everything Compare, the report and the command line show of one study.

    specs: the metrics that have scores, in the order they were given.
    matrix: Spearman's ρ over models, people and metrics by people and metrics, each oriented so
        that more means more leakage; index and columns are titles.
    notes: what a reader must be told before any number.
    The other tables have the columns named above, numbers being NaN where undefined says why.
    """

    evidence: Evidence
    settings: AnalysisSettings
    specs: tuple[MetricSpec, ...]
    models: pd.DataFrame
    agreement: pd.DataFrame
    ceiling: Ceiling
    backbones: pd.DataFrame
    differences: pd.DataFrame
    auc: pd.DataFrame
    rules: pd.DataFrame
    stability: pd.DataFrame
    disagreement: pd.DataFrame
    matrix: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def candidates(self) -> pd.DataFrame:
        """The rows of the agreement of metrics that may lead: no controls, and without a mark."""
        names, marked = self.agreement["metric"], self.agreement["mark"].ne("")
        return self.agreement[~marked & ~names.map(is_control).astype(bool)]

    def of_candidates(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table, with the column metric, that are of `candidates`."""
        return table[table["metric"].isin(self.candidates["metric"])]

    @property
    def score_title(self) -> str:
        """Title of the human score that models are ranked by."""
        return title_of(self.evidence, self.settings.headline)

    @property
    def label_words(self) -> str:
        """Meaning of the binary label of an image, as a clause."""
        if self.evidence.ratings is not None and self.settings.headline == "mean-rating":
            return (
                "whether its mean rating is at or above the threshold; undecided ones are left out"
            )
        return (
            f"whether '{self.score_title}' is above one half; exactly one half is undecided and "
            "left out"
        )
