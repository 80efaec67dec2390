import numpy as np
import pandas as pd
import pytest

from semsim.base.stats.grouping import architecture_and_strategy, layout_of, model_means

IMAGES = pd.DataFrame(
    [
        ("d", "a", "m", "1"),
        ("d", "a", "m", "2"),
        ("d", "a", "n", "1"),
        ("e", "a", "m", "1"),
    ],
    columns=["dataset", "attack", "model", "image_id"],
)


def test_an_original_is_an_image_of_a_data_set_and_a_model_is_told_by_all_three():
    layout = layout_of(IMAGES)
    assert layout.models["label"].tolist() == ["m · d", "n · d", "m · e"]
    assert layout.model.tolist() == [0, 0, 1, 2]
    assert layout.original.tolist() == [0, 1, 0, 2]
    assert layout.dataset.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("ResNet20-4_200_inversed", ("ResNet20-4", "200_inversed")),
        ("convnet/demo", ("convnet", "demo")),
        ("vgg · none", ("vgg", "none")),
        ("a|b", ("a", "b")),
        ("plain", ("plain", "")),
        ("_odd", ("_odd", "odd")),
        ("resnet/", ("resnet", "")),
        ("cnn4/none/invgrad", ("cnn4", "none")),
        ("cnn4/none/invgrad:steps=3", ("cnn4", "none")),
        ("digits/cnn4/none/invgrad", ("cnn4", "none")),
        ("digits:size=8/cnn4/none", ("cnn4", "none")),
        ("cnn4:batch_norm=true/none/invgrad", ("cnn4:batch_norm=true", "none")),
        ("cnn4:batch_norm=true", ("cnn4:batch_norm=true", "")),
        ("cnn4/dp-sgd:noise=0.1/update:steps=2/invgrad", ("cnn4", "dp-sgd:noise=0.1")),
        ("cnn4/none/until=0.3/invgrad", ("cnn4", "none")),
        ("cnn4/none/seed 1/invgrad", ("cnn4", "none")),
        ("quartered/invgrad", ("quartered", "")),
        ("mobilenet_v3/none/invgrad", ("mobilenet_v3", "none")),
        ("folder:root=/a_b/digits,size=8/cnn4/none/invgrad", ("cnn4", "none")),
        ("cnn4:network=digits/none/invgrad", ("cnn4:network=digits", "none")),
        ("digits", ("digits", "")),
        ("invgrad/none", ("invgrad", "none")),
    ],
)
def test_architecture_and_strategy_are_read_out_of_names(model, expected):
    assert architecture_and_strategy(model, "digits", "invgrad") == expected


def test_means_under_weights_are_means_of_repeated_images():
    layout = layout_of(IMAGES)
    values = np.array([1.0, 4.0, 2.0, 7.0])
    weights = np.array([[1.0, 1, 1], [2, 1, 0]])
    nan = np.nan
    np.testing.assert_allclose(
        model_means(layout, values, weights), [[2.5, 2, 7], [(1 + 1 + 4) / 3, 2, nan]]
    )


def test_infinite_values_are_kept_out_unless_there_are_no_others():
    layout = layout_of(IMAGES)
    once = np.ones((1, 3))
    nan, inf = np.nan, np.inf
    for values, expected in (
        ([inf, 4, inf, nan], [4, inf, nan]),
        ([-inf, nan, 1, -inf], [-inf, 1, -inf]),
        ([inf, -inf, 1, 1], [nan, 1, 1]),
    ):
        np.testing.assert_equal(model_means(layout, np.array(values), once), [expected])


def test_equal_means_tie_in_whatever_order_they_are_summed():
    shares = np.random.default_rng(0).integers(0, 6, 200) / 5
    orders = [np.random.default_rng(seed).permutation(shares) for seed in range(5)]
    assert len({float(np.ones(200) @ order) for order in orders}) > 1  # else it could not fail
    images = pd.DataFrame(
        [("d", "a", model, f"{i:03}") for model in "mnopq" for i in range(200)],
        columns=IMAGES.columns,
    )
    means = model_means(layout_of(images), np.concatenate(orders), np.ones((1, 200)))
    assert len(set(means[0])) == 1
    assert means[0, 0] == pytest.approx(shares.mean(), rel=1e-12)
