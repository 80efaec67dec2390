"""Predictions of a classifier for pictures of a set, as `semsim.base.sets.set_format` keeps it."""

from collections.abc import Iterable

import pandas as pd
from torch import Tensor

from semsim.base.sets.set_format import PREDICTION_COLUMNS
from semsim.metrics.classifier import Classifier


def predictions(
    classifier: Classifier, pictures: Iterable[tuple[str, str, Tensor]]
) -> pd.DataFrame:
    """The log-probabilities of all classes for each picture, with `PREDICTION_COLUMNS`.

    pictures: (image_id, "original" or "reconstruction", (3, H, W) float32 in [0, 1]). The logits
    are float32, their softmax float64 and not rounded: what is all but certain still has an order.
    """
    rows = []
    for image_id, subject, picture in pictures:
        logs = classifier.logits(picture[None])[0].double().log_softmax(0).tolist()
        rows += [
            (image_id, subject, name, log)
            for name, log in zip(classifier.classes, logs, strict=True)
        ]
    return pd.DataFrame(rows, columns=list(PREDICTION_COLUMNS))
