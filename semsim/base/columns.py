"""The columns of tables of votes, labels and scores, which studies export and imports bring."""

from collections.abc import Mapping
from dataclasses import dataclass

# Of votes, one a row, with their types.
VOTE_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("study", "task", "item", "kind", "model", "dataset", "attack"), "str"),
    **dict.fromkeys(("image_id", "class_name"), "str"),
    "expected": "str",  # the answer to a trial, where it is known beforehand
    "stratum": "Int64",  # quality of what is shown within its model, 0 = best; not of originals
    **dict.fromkeys(("annotator", "answer", "reason"), "str"),
    "recognised": "bool",
    "rt_ms": "float64",
    **dict.fromkeys(("client_ts", "server_ts"), "datetime64[us, UTC]"),
    "display": "str",  # JSON: what the picture looked like on screen
    "views": "str",  # which were looked at, with spaces, the first one first
    "status": "str",
    "protocol": "int64",  # version of the settings the item was shown under
    "vote_id": "str",
    "simulated": "bool",
    "voter": "str",  # who votes in the study, as `words.voters_of` has it
    "votes_per_item": "int64",
    "headline": "str",
    "judges": "str",  # SHA-256 of the weights that ranked the words of the lists, with spaces
    "lists": "str",  # what the lists tell whoever sees only them, in sentences
}
RATED = {"rating_levels": "int64", "rating_threshold": "float64"}  # of votes that are numbers
ORIGINAL_ANSWER = "original_answer"  # column of votes: what most people call their original
AS_NAMED = "as-original-named"  # the headline that goes by it
# Of labels, one row a reconstruction.
ITEM_COLUMNS = (
    *("study", "task", "headline", "item", "model", "dataset", "attack", "image_id", "class_name"),
    *("original", "reconstruction"),
    "attacked",  # missing where the study does not have it
)
LABEL_COLUMNS = (
    *ITEM_COLUMNS,
    *("n_votes", "n_recognised", "mean_response", "recognisable", "votes_per_item", "simulated"),
    "voter",
)
# Further ones, as the arguments of `words.target_words`: how good the target model was on its
# test split, where it is known, and the ε and δ of its training; a δ without an ε says it is ∞.
AT_CHANCE = "target_at_chance"
TARGET_COLUMNS = ("target_accuracy", "target_chance", AT_CHANCE, "target_epsilon", "target_delta")
# What names a model and one of its images, and tables of scores, one a row.
MODEL_KEY = ["dataset", "attack", "model"]
IMAGE_KEY = [*MODEL_KEY, "image_id"]
SCORE_COLUMNS = (*IMAGE_KEY, "metric", "value")
# Of shares of single people, one row a person and model, where a source has no single votes.
SHARE_COLUMNS = (*MODEL_KEY, "annotator", "share")
ATTACKER = "attacker"  # column of labels: what the attacker knew and saw, see `attacker_words`
ARCHITECTURE = "architecture"  # column of labels: the target's network, where a source states it
LEAKS = "leaks"  # column of scores: "higher" or "lower", of metrics that are not known here


@dataclass(frozen=True, kw_only=True)
class ScoreColumn:
    """The column of a metric's scores, its divisor, and which values leak more: "higher", "lower".

    Attributes:
        leaks: "" of a metric that is known here.
    """

    name: str
    leaks: str = ""
    divisor: float = 1.0
