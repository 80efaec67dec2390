import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.defences.gradient_noise import GradientNoise

GRADIENTS = (torch.zeros(200, 50), torch.ones(7))


def test_noise_has_the_standard_deviation_asked_for():
    noisy, _ = GradientNoise(std=0.02).gradients(
        GRADIENTS, torch.Generator().manual_seed(0), "attack"
    )
    assert noisy.std().item() == pytest.approx(0.02, rel=0.03)  # 10,000 draws: ±0.7%
    assert abs(noisy.mean().item()) < 0.001


def test_laplacian_noise_has_its_standard_deviation_and_heavier_tails():
    noisy, _ = GradientNoise(std=0.02, distribution="laplacian").gradients(
        GRADIENTS, torch.Generator().manual_seed(0), "attack"
    )
    assert noisy.std().item() == pytest.approx(0.02, rel=0.05)  # 10,000 draws: ±1.1%
    kurtosis = ((noisy / noisy.std()) ** 4).mean().item()
    assert kurtosis == pytest.approx(6, rel=0.25)  # 3 would be Gaussian
    assert abs(noisy.mean().item()) < 0.001


@pytest.mark.parametrize("settings", [{"std": -1.0}, {"std": float("nan")}, {"distribution": "x"}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(SettingsError, match="got"):
        GradientNoise(**settings)


def test_no_noise_is_the_identity(is_identity):
    assert is_identity(GradientNoise(std=0.0))
