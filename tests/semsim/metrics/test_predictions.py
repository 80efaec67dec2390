"""What a judge reads in pictures is kept as it is: unrounded, and in the order of its logits."""

import numpy as np
import pandas as pd
import torch
from torch import nn

from semsim.metrics.classifier import Classifier
from semsim.metrics.predictions import predictions


class Certain(nn.Module):
    """Is all but certain that a picture shows the first of its classes."""

    classes = tuple(f"c{k}" for k in range(40))

    def forward(self, images):
        return (-torch.arange(40.0) * 60).expand(len(images), 40)


def test_a_certain_judge_still_has_an_order(tmp_path):
    picture = torch.zeros(3, 4, 4)
    judge = Classifier(module=Certain(), device="cpu")
    made = predictions(judge, [("a", "original", picture), ("a", "reconstruction", picture)])
    made.to_parquet(tmp_path / "predictions.parquet")
    table = pd.read_parquet(tmp_path / "predictions.parquet")
    assert list(table.columns) == ["image_id", "subject", "class_name", "log_probability"]
    assert table["log_probability"].dtype == np.float64
    one = table[table["subject"] == "original"].sort_values("log_probability", ascending=False)
    assert tuple(one["class_name"]) == Certain.classes
    assert one["log_probability"].nunique() == 40
    assert (np.exp(one["log_probability"]).round(6) == 0).sum() == 39  # what it would have been
