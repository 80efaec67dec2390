"""Names of target models in words."""

import json

import pytest

from semsim.base.plain_names import name_html, plain_name
from semsim.base.storage.places import DEMO


@pytest.mark.parametrize(
    ("model", "plain"),
    [
        ("cnn4:activation=silu/noise/prior", "small smooth net, noise on gradients, our attack"),
        ("resnet20-4/none/invgrad", "ResNet20-4, no defence, Inverting Gradients"),
        (
            "cnn4:activation=silu/none/until=0.3/prior",
            "small smooth net, no defence, trained until accuracy 0.3, our attack",
        ),
        ("my-net:width=2/none/prior", "my-net:width=2, no defence, our attack"),
        ("demo/convnet8/dp-sgd/dlg", "ConvNet8, DP-SGD, Deep Leakage"),
        ("convnet8/none/prior · prior", "ConvNet8, no defence, our attack"),
        ("convnet8/none/prior · symbols", "ConvNet8, no defence, our attack, symbols"),
        *((own, own) for own in ("", "convnet8", "a/b/c", "none/prior", "convnet8/none/theirs")),
    ],
)
def test_a_name_whose_parts_are_known_is_told_in_words(model, plain):
    assert plain_name(model) == plain


def test_every_model_of_the_demo_has_a_name_of_its_own_in_words():
    models = {json.loads(run.read_text())["model"] for run in DEMO.glob("*/*/run.json")}
    told = {plain_name(model) for model in models}
    assert not told & models
    assert len(told) == len(models)


def test_the_own_name_stands_below_and_is_never_markup():
    shown = name_html("<b>/none/prior")
    assert shown.startswith("&lt;b&gt;, no defence, our attack<small")
    assert "&lt;b&gt;/<wbr>none/<wbr>prior</small>" in shown
    assert name_html("a/<i>") == "a/<wbr>&lt;i&gt;"
