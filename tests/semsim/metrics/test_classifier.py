import numpy as np
import pandas as pd
import pytest
import torch
from made_measures import cloud_distance
from made_weights import CLASSES, make_classifier
from torch import nn

from semsim.base.errors import DataError, SettingsError, WeightsError
from semsim.metrics import Pairs, Resources, all_metrics, find_metric
from semsim.metrics.classifier import (
    Classifier,
    load_classifier,
    predictions,
    recognised,
)
from semsim.metrics.recogniser import ClassifierDistance, Recogniser, check_name, find_classifier

CPU = torch.device("cpu")


class Brightness(nn.Module):
    """Calls an image "dark" or "bright" by its mean, which is its only feature."""

    classes = ("dark", "bright")

    def features(self, images):
        return images.mean(dim=(1, 2, 3))[:, None]

    def forward(self, images):
        mean = self.features(images)
        return torch.cat([0.5 - mean, mean - 0.5], dim=1)


def shades(*values, side=4):
    return torch.stack([torch.full((3, side, side), value) for value in values])


def test_recognised_compares_the_first_choice_with_the_truth():
    classifier = Classifier(module=Brightness(), device=CPU)
    pairs = Pairs(
        originals=shades(0.0, 0.0, 0.0),
        reconstructions=shades(0.2, 0.9, 0.8),
        class_names=("dark", "dark", "bright"),
    )
    assert recognised(classifier, pairs).tolist() == [1.0, 0.0, 1.0]


def test_classes_must_be_known_to_both_sides():
    classifier = Classifier(module=Brightness(), device=CPU)
    images = shades(0.1)
    with pytest.raises(DataError, match="<class>/<image>"):
        recognised(classifier, Pairs(originals=images, reconstructions=images))
    with pytest.raises(DataError, match=r"not trained on 'cat'.*dark, bright"):
        recognised(
            classifier,
            Pairs(originals=images, reconstructions=images, class_names=("cat",)),
        )


def test_images_of_another_size_are_resized_and_stay_images():
    seen = []

    class Spy(Brightness):
        def features(self, images):
            seen.append(images)
            return super().features(images)

    classifier = Classifier(module=Spy(), device=CPU, size=(8, 8))
    checker = torch.eye(16).expand(1, 3, 16, 16).contiguous()
    assert classifier.features(checker).dtype == np.float64
    assert classifier.logits(checker).shape == (1, 2)
    assert seen[0].shape == (1, 3, 8, 8)
    assert 0 <= float(seen[0].min()) <= float(seen[0].max()) <= 1


def test_a_saved_classifier_answers_as_the_one_in_memory(tmp_path):
    model = make_classifier(tmp_path / "recogniser.safetensors")
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    classifier = load_classifier(tmp_path / "recogniser.safetensors", CPU)
    assert classifier.classes == CLASSES
    assert torch.allclose(classifier.logits(images), model(images).detach(), atol=1e-6)
    assert classifier.size == (16, 16)


def test_metrics_use_the_named_classifier(tmp_path):
    make_classifier(tmp_path / "recogniser.safetensors")
    resources = Resources(checkpoints=tmp_path, classifiers=())
    x, y = torch.rand(2, 6, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    pairs = Pairs(originals=x, reconstructions=y, class_names=("cat",) * 6)
    classifier = load_classifier(tmp_path / "recogniser.safetensors", CPU)
    distance = ClassifierDistance(classifier="recogniser").prepare(resources)(pairs)
    assert distance.values == pytest.approx(
        [cloud_distance(classifier.features(x), classifier.features(y))]
    )
    assert "6 images for 16 feature dimensions" in distance.notes[0]
    shares = Recogniser().prepare(resources)(pairs)
    assert shares.values.shape == (6,)
    assert set(shares.values) <= {0.0, 1.0}


def test_a_judge_is_a_recogniser_and_a_distance_by_its_name(tmp_path):
    make_classifier(tmp_path / "judges/J.safetensors")
    make_classifier(tmp_path / "own.safetensors")
    found = all_metrics(Resources(checkpoints=tmp_path, classifiers=()))
    named = {name for name in found if name.partition(":")[2]}
    assert named == {"fd:recogniser", "fd:J", "recogniser:J", "fd:own"}
    x = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    pairs = Pairs(originals=x, reconstructions=x, class_names=("cat",) * 2)
    metric = find_metric("recogniser:J")
    assert metric.spec.title == "Recognised by J"
    scores = metric.prepare(Resources(checkpoints=tmp_path, classifiers=()))(pairs)
    assert set(scores.values) <= {0.0, 1.0}
    assert find_metric("recogniser").spec.title == "Recognised by a classifier"


def test_a_classifier_is_looked_for_in_every_folder(tmp_path):
    demo = tmp_path / "demo"
    make_classifier(demo / "recogniser.safetensors")
    resources = Resources(checkpoints=tmp_path / "checkpoints", classifiers=(demo,))
    assert find_classifier("recogniser", resources) == demo / "recogniser.safetensors"
    with pytest.raises(WeightsError, match=r"other.safetensors is missing.*checkpoints and"):
        find_classifier("other", resources)


@pytest.mark.parametrize("name", ["", "../secret", "a/b", ".hidden", "a b"])
def test_a_name_is_never_a_path(name):
    with pytest.raises(SettingsError, match="not the name of a file"):
        check_name(name)
    with pytest.raises(SettingsError):
        ClassifierDistance(classifier=name)


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
