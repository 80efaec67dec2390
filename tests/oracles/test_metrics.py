"""Metrics against the libraries that define them and against slow, obvious loops."""

from functools import partial

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import skimage.filters
import skimage.metrics
import torch
from made_measures import cloud_distance
from torch_fidelity.metric_kid import kernel_poly, mmd2
from torchmetrics.image.kid import poly_mmd

from semsim.metrics import ms_ssim, mse, psnr, psnr_registered, ssim, ssim_registered
from semsim.metrics.inception import kernel_distance

SSIM = {
    "gaussian": {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False},
    "uniform": {},
}


OF_LIBRARY = {
    "mse": (mse, skimage.metrics.mean_squared_error, {}),
    "psnr": (psnr, skimage.metrics.peak_signal_noise_ratio, {}),
    "ssim": (ssim, skimage.metrics.structural_similarity, SSIM["gaussian"]),
    "ssim-uniform": (partial(ssim, window="uniform"), skimage.metrics.structural_similarity, {}),
}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("name", OF_LIBRARY)
def test_bytes_and_floats_in_colour_and_grey_equal_scikit_image(name, dtype, channels):
    ours, theirs, settings = OF_LIBRARY[name]
    draw = np.random.default_rng(7)
    first = draw.random((4, 24, 20, channels))
    second = (first + draw.normal(0, 0.1, first.shape)).clip(0, 1)
    if dtype is np.uint8:
        first, second = 255 * first, 255 * second
    first, second = first.astype(dtype), second.astype(dtype)
    top = 255 if dtype is np.uint8 else 1
    keywords = {**settings, "data_range": top} if name != "mse" else {}
    if name.startswith("ssim"):
        keywords["channel_axis"] = -1
    # scikit-image would compute in float32 for float32, and be the less exact of the two
    given = (x.astype(np.float64) if dtype is np.float32 else x for x in (first, second))
    expected = [theirs(a, b, **keywords) for a, b in zip(*given, strict=True)]
    if name == "mse":
        expected = [value / top**2 for value in expected]  # ours is of [0, 1] for bytes too
    tensors = (torch.from_numpy(x).permute(0, 3, 1, 2) for x in (first, second))
    assert ours(*tensors) == pytest.approx(expected, abs=1e-10)


def test_psnr_of_bytes_that_differ_by_one_grey_level_equals_scikit_image_to_the_last_digit():
    first = np.random.default_rng(8).integers(0, 255, (50, 8, 8, 3), dtype=np.uint8)
    second = first.copy()
    second[:, 3, 4, 1] += 1
    expected = [
        skimage.metrics.peak_signal_noise_ratio(a, b) for a, b in zip(first, second, strict=True)
    ]
    x, y = (torch.from_numpy(a).permute(0, 3, 1, 2).float() / 255 for a in (first, second))
    assert psnr(x, y) == pytest.approx(expected, abs=1e-9)


def registrations(a, b, shift, flip):
    """Every overlap of b, shifted and maybe mirrored, with a, worked out pixel by pixel."""
    height, width, _ = a.shape
    for candidate in (b, b[:, ::-1]) if flip else (b,):
        for dy in range(-shift, shift + 1):
            for dx in range(-shift, shift + 1):
                rows = [y for y in range(height) if 0 <= y - dy < height]
                columns = [x for x in range(width) if 0 <= x - dx < width]
                yield (
                    a[np.ix_(rows, columns)],
                    candidate[np.ix_([y - dy for y in rows], [x - dx for x in columns])],
                )


@pytest.mark.parametrize(("shift", "flip"), [(0, False), (0, True), (2, False), (2, True)])
@pytest.mark.parametrize("channels", [1, 3])
def test_registered_metrics_equal_the_best_of_scikit_image_in_a_loop(shift, flip, channels):
    draw = np.random.default_rng(9)
    base = skimage.filters.gaussian(draw.random((3, 20, 18, channels)), sigma=(0, 2, 2, 0))
    first = (base * 255).astype(np.uint8)
    moved = [first[0][:, ::-1], np.roll(first[1], 2, axis=0), np.roll(first[2], (-1, 1), (0, 1))]
    second = np.clip(np.stack(moved) + draw.normal(0, 10, first.shape), 0, 255).astype(np.uint8)
    expected = {"psnr": [], "ssim": []}
    for a, b in zip(first, second, strict=True):
        overlaps = list(registrations(a, b, shift, flip))
        expected["psnr"].append(
            max(skimage.metrics.peak_signal_noise_ratio(p, q) for p, q in overlaps)
        )
        expected["ssim"].append(
            max(
                skimage.metrics.structural_similarity(p, q, channel_axis=-1, **SSIM["gaussian"])
                for p, q in overlaps
            )
        )
    x, y = (torch.from_numpy(i).permute(0, 3, 1, 2) for i in (first, second))
    assert psnr_registered(x, y, shift, flip) == pytest.approx(expected["psnr"], abs=1e-10)
    assert ssim_registered(x, y, shift, flip) == pytest.approx(expected["ssim"], abs=1e-12)


def ms_ssim_by_hand(a, b):
    """Wang, Simoncelli and Bovik 2003, equation 7, of (H, W) arrays, with scipy."""
    blur = partial(scipy.ndimage.gaussian_filter, sigma=1.5, radius=5)
    product = 1.0
    for scale, weight in enumerate((0.0448, 0.2856, 0.3001, 0.2363, 0.1333)):
        if scale:
            height, width = (side // 2 for side in a.shape)
            a, b = (i.reshape(height, 2, width, 2).mean(axis=(1, 3)) for i in (a, b))
        mean_a, mean_b = blur(a), blur(b)
        covariance = blur(a * b) - mean_a * mean_b
        spread = blur(a * a) - mean_a**2 + blur(b * b) - mean_b**2
        contrast = (2 * covariance + 0.03**2) / (spread + 0.03**2)
        luminance = (2 * mean_a * mean_b + 0.01**2) / (mean_a**2 + mean_b**2 + 0.01**2)
        inside = (slice(5, -5), slice(5, -5))
        similarity = contrast * luminance if scale == 4 else contrast
        product *= similarity[inside].mean() ** weight
    return product


def test_ms_ssim_equals_its_formula_written_out():
    draw = np.random.default_rng(10)
    first = draw.random((2, 3, 176, 192))
    second = 0.6 * first + 0.4 * draw.random(first.shape)
    expected = [
        np.mean([ms_ssim_by_hand(p, q) for p, q in zip(a, b, strict=True)])
        for a, b in zip(first, second, strict=True)
    ]
    x, y = (torch.from_numpy(i).float() for i in (first, second))
    assert ms_ssim(x, y).tolist() == pytest.approx(expected, abs=1e-4)


def test_ssim_equals_its_formula_written_out_at_one_pixel():
    first, second = np.random.default_rng(2).integers(0, 256, (2, 1, 11, 11, 3), dtype=np.uint8)
    x, y = (torch.from_numpy(i).permute(0, 3, 1, 2) for i in (first, second))
    # an 11-pixel image has one place for an 11-pixel window
    offsets = np.arange(-5, 6)
    weights = np.exp(-(offsets**2) / (2 * 1.5**2))
    weights = np.outer(weights, weights) / np.outer(weights, weights).sum()
    channels = []
    for a, b in zip(*(np.moveaxis(i[0] / 255, 2, 0) for i in (first, second)), strict=True):
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
    assert cloud_distance(x, y) == pytest.approx(frechet_by_square_root(x, y), rel=1e-6)


def test_frechet_distance_below_full_rank_equals_eigenvalues():
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(5, 12)), draw.normal(0.5, 2, size=(5, 12))
    first, second = np.cov(x.T), np.cov(y.T)
    values = np.linalg.eigvals(first @ second).real.clip(0)
    gap = x.mean(0) - y.mean(0)
    expected = gap @ gap + np.trace(first) + np.trace(second) - 2 * np.sqrt(values).sum()
    # the roots of eigenvalues that should be 0 are about 1e-8 each
    assert cloud_distance(x, y) == pytest.approx(expected, abs=1e-5)


def test_frechet_distance_is_the_same_on_both_sides_of_full_rank():
    draw = np.random.default_rng(2)
    x, y = draw.normal(size=(10, 10)), draw.normal(1, 2, size=(10, 10))
    padded = [np.hstack([cloud, np.zeros((10, 3))]) for cloud in (x, y)]  # N < d now
    assert cloud_distance(*padded) == pytest.approx(cloud_distance(x, y), rel=1e-10)


def kernel_by_loop(x, y):
    def k(a, b):
        return (sum(p * q for p, q in zip(a, b, strict=True)) / len(a) + 1) ** 3

    n, total = len(x), 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                total += (k(x[i], x[j]) + k(y[i], y[j])) / (n * (n - 1))
            total -= 2 * k(x[i], y[j]) / n**2
    return total


def test_kernel_distance_equals_a_loop():
    draw = np.random.default_rng(3)
    x, y = draw.normal(size=(7, 5)), draw.normal(0.5, size=(7, 5))
    assert kernel_distance(x, y).value == pytest.approx(kernel_by_loop(x, y), rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 12, 30])
def test_kernel_distance_equals_those_of_torch_fidelity_and_torchmetrics(n):
    draw = np.random.default_rng(4)
    x = draw.normal(size=(n, 6))
    for y in (draw.normal(0.5, size=(n, 6)), x + draw.normal(0, 0.1, size=(n, 6))):
        kernels = [kernel_poly(a, b) for a, b in ((x, x), (x, y), (y, y))]
        found = kernel_distance(x, y).value
        assert found == pytest.approx(mmd2(*kernels, mmd_est="unbiased"), rel=1e-9)
        other = poly_mmd(torch.from_numpy(x), torch.from_numpy(y))
        assert found == pytest.approx(float(other), rel=1e-9)


def test_the_jackknife_equals_leaving_out_one_by_one():
    draw = np.random.default_rng(5)
    x, y = draw.normal(size=(9, 4)), draw.normal(0.5, size=(9, 4))
    without = np.array(
        [kernel_by_loop(np.delete(x, i, axis=0), np.delete(y, i, axis=0)) for i in range(9)]
    )
    expected = np.sqrt(8 / 9 * ((without - without.mean()) ** 2).sum())
    assert kernel_distance(x, y).standard_error == pytest.approx(expected, rel=1e-9)
