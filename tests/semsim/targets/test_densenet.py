import pytest
import torch

from semsim.targets.densenet import DenseNet40


@pytest.mark.parametrize(
    ("bottleneck", "millions"),
    # Huang et al. 2017, Table 2 gives 1.0 M for the plain one; 10 classes.
    [(False, 1.02), (True, 0.176)],
)
def test_both_kinds_have_40_layers_and_the_published_size(bottleneck, millions):
    body, features = DenseNet40(bottleneck=bottleneck).build(3, (32, 32))
    convolutions = [m for m in body.modules() if isinstance(m, torch.nn.Conv2d)]
    assert len(convolutions) + 1 == 40  # and the head
    total = sum(p.numel() for p in body.parameters()) + 10 * features + 10
    assert total / 1e6 == pytest.approx(millions, rel=0.01)


def test_pooled_by_four_it_has_the_authors_2112_features_at_64_pixels():
    assert DenseNet40(pool=4).build(3, (64, 64))[1] == 2112
    assert DenseNet40().build(3, (64, 64))[1] == 132
