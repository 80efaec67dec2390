"""Metrics against the libraries that define them and against slow, obvious loops."""

import numpy as np
import pytest
import scipy.linalg
import skimage.metrics
import torch
from torch_fidelity.metric_kid import kernel_poly, mmd2

from semsim.metrics.frechet import frechet_distance
from semsim.metrics.kid import kernel_distance
from semsim.metrics.pixel import mse, psnr
from semsim.metrics.ssim import ssim

SSIM = {
    "gaussian": {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False},
    "uniform": {},
}


def images(seed=0, n=4, side=24):
    """Pairs of 8-bit images, as (N, 3, H, W) float32 and as (N, H, W, 3) uint8."""
    draw = np.random.default_rng(seed)
    first = draw.integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    second = np.clip(first + draw.normal(0, 40, first.shape), 0, 255).astype(np.uint8)
    tensors = [torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255 for x in (first, second)]
    return tensors, (first, second)


def test_mse_and_psnr_equal_a_loop_and_scikit_image_on_bytes():
    (x, y), (a, b) = images()
    by_hand = [
        sum((int(p) - int(q)) ** 2 for p, q in zip(i.flat, j.flat, strict=True)) / i.size / 255**2
        for i, j in zip(a, b, strict=True)
    ]
    assert mse(x, y) == pytest.approx(by_hand, rel=1e-6)
    expected = [skimage.metrics.peak_signal_noise_ratio(i, j) for i, j in zip(a, b, strict=True)]
    assert psnr(x, y) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("window", SSIM)
def test_ssim_equals_scikit_image(window):
    (x, y), (a, b) = images(1)
    expected = [
        skimage.metrics.structural_similarity(
            i / 255, j / 255, channel_axis=-1, data_range=1.0, **SSIM[window]
        )
        for i, j in zip(a, b, strict=True)
    ]
    assert ssim(x, y, window) == pytest.approx(expected, abs=1e-6)


def test_ssim_equals_its_formula_written_out_at_one_pixel():
    (x, y), _ = images(2, n=1, side=11)
    # an 11-pixel image has one place for an 11-pixel window
    offsets = np.arange(-5, 6)
    weights = np.exp(-(offsets**2) / (2 * 1.5**2))
    weights = np.outer(weights, weights) / np.outer(weights, weights).sum()
    channels = []
    for a, b in zip(x[0].double().numpy(), y[0].double().numpy(), strict=True):
        mean_a, mean_b = (weights * a).sum(), (weights * b).sum()
        var_a, var_b = (weights * a * a).sum() - mean_a**2, (weights * b * b).sum() - mean_b**2
        cov = (weights * a * b).sum() - mean_a * mean_b
        c1, c2 = 0.01**2, 0.03**2
        channels.append(
            (2 * mean_a * mean_b + c1)
            * (2 * cov + c2)
            / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))
        )
    assert ssim(x, y) == pytest.approx([np.mean(channels)], abs=1e-9)


def frechet_by_square_root(x, y):
    first, second = np.cov(x.T), np.cov(y.T)
    root = scipy.linalg.sqrtm(first @ second).real
    gap = x.mean(0) - y.mean(0)
    return gap @ gap + np.trace(first) + np.trace(second) - 2 * np.trace(root)


@pytest.mark.parametrize("n", [40, 9])  # full rank, and as few images as the root can take
def test_frechet_distance_equals_the_matrix_square_root(n):
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(n, 8)), draw.normal(0.5, 2, size=(n, 8))
    assert frechet_distance(x, y) == pytest.approx(frechet_by_square_root(x, y), rel=1e-6)


def test_frechet_distance_below_full_rank_equals_eigenvalues():
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(5, 12)), draw.normal(0.5, 2, size=(5, 12))
    first, second = np.cov(x.T), np.cov(y.T)
    values = np.linalg.eigvals(first @ second).real.clip(0)
    gap = x.mean(0) - y.mean(0)
    expected = gap @ gap + np.trace(first) + np.trace(second) - 2 * np.sqrt(values).sum()
    # the roots of eigenvalues that should be 0 are about 1e-8 each
    assert frechet_distance(x, y) == pytest.approx(expected, abs=1e-5)


def test_frechet_distance_is_the_same_on_both_sides_of_full_rank():
    draw = np.random.default_rng(2)
    x, y = draw.normal(size=(10, 10)), draw.normal(1, 2, size=(10, 10))
    padded = [np.hstack([cloud, np.zeros((10, 3))]) for cloud in (x, y)]  # N < d now
    assert frechet_distance(*padded) == pytest.approx(frechet_distance(x, y), rel=1e-10)


def kernel_by_loop(x, y):
    def k(a, b):
        return (sum(p * q for p, q in zip(a, b, strict=True)) / len(a) + 1) ** 3

    n, total = len(x), 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                total += k(x[i], x[j]) + k(y[i], y[j]) - k(x[i], y[j]) - k(x[j], y[i])
    return total / (n * (n - 1))


def test_kernel_distance_equals_a_loop():
    draw = np.random.default_rng(3)
    x, y = draw.normal(size=(7, 5)), draw.normal(0.5, size=(7, 5))
    assert kernel_distance(x, y).value == pytest.approx(kernel_by_loop(x, y), rel=1e-12)


def test_kernel_distance_equals_torch_fidelitys_u_statistic():
    draw = np.random.default_rng(4)
    x, y = draw.normal(size=(30, 6)), draw.normal(0.5, size=(30, 6))
    kernels = [kernel_poly(a, b) for a, b in ((x, x), (x, y), (y, y))]
    expected = mmd2(*kernels, mmd_est="u-statistic")
    assert kernel_distance(x, y).value == pytest.approx(expected, rel=1e-9)


def test_the_jackknife_equals_leaving_out_one_by_one():
    draw = np.random.default_rng(5)
    x, y = draw.normal(size=(9, 4)), draw.normal(0.5, size=(9, 4))
    without = np.array(
        [kernel_by_loop(np.delete(x, i, axis=0), np.delete(y, i, axis=0)) for i in range(9)]
    )
    expected = np.sqrt(8 / 9 * ((without - without.mean()) ** 2).sum())
    assert kernel_distance(x, y).standard_error == pytest.approx(expected, rel=1e-9)
