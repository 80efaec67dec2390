import pytest
import torch

from semsim.targets.lenet import CNN4, LeNet, start_uniform


def test_lenet_has_the_sizes_of_deep_leakage_from_gradients():
    body, features = LeNet().build(3, (32, 32))
    assert features == 768
    kernels = [3 * 12 * 25, 12 * 12 * 25, 12 * 12 * 25]
    assert [p.numel() for p in body.parameters() if p.ndim == 4] == kernels
    assert sum(isinstance(module, torch.nn.Sigmoid) for module in body) == 3


def test_cnn4_is_four_convolutions_of_32_channels():
    body, features = CNN4().build(3, (32, 32))
    assert features == 32 * 8 * 8
    kernels = [3 * 32 * 9, *[32 * 32 * 9] * 3]
    assert [p.numel() for p in body.parameters() if p.ndim == 4] == kernels


def test_batch_norm_comes_after_each_convolution():
    plain, normal = (
        CNN4(width=4, batch_norm=given).build(3, (32, 32))[0] for given in (False, True)
    )
    norms = [place for place, one in enumerate(normal) if isinstance(one, torch.nn.BatchNorm2d)]
    assert norms == [1, 4, 7, 10]
    assert [type(one) for place, one in enumerate(normal) if place not in norms] == [
        type(one) for one in plain
    ]


@pytest.mark.parametrize("architecture", [LeNet, CNN4])
def test_activation_is_a_setting(architecture):
    body, _ = architecture(activation="silu").build(1, (28, 20))
    kinds = [type(m) for m in body if not isinstance(m, torch.nn.Conv2d | torch.nn.Flatten)]
    assert set(kinds) == {torch.nn.SiLU}


def test_uniform_start_is_seeded_and_fills_its_range():
    def weights(seed):
        body, _ = LeNet().build(3, (32, 32))
        start_uniform(body, torch.Generator().manual_seed(seed))
        return torch.cat([p.flatten() for p in body.parameters()])

    drawn = weights(0)
    assert torch.equal(drawn, weights(0))
    assert not torch.equal(drawn, weights(1))
    assert 0.49 < drawn.abs().max() <= 0.5
    assert drawn.std().item() == pytest.approx(0.5 / 3**0.5, rel=0.05)  # 8,136 draws: ±0.5%
