"""Nothing computes in float64 on a GPU that has none: it moves to the CPU first."""

import ast
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from pretended_gpu import Answering, OnGpu, on_gpu
from torch import nn

from semsim.device import in_float64
from semsim.learning.diagnostics import distances
from semsim.metrics.base import Pairs, as_array
from semsim.metrics.perceptual import lpips_distance
from semsim.systems.federated.pbpfl import ClientUpload, MaskKey, Pbpfl, recover
from semsim.torchmetrics import SemSim

PRODUCT = Path(__file__).resolve().parents[2] / "semsim"


def drawn(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0))


def test_the_pretended_gpu_refuses_what_apples_does():
    there = on_gpu(drawn(2))
    assert there.device.type == "mps"
    assert isinstance(there * 2, OnGpu)
    with pytest.raises(TypeError, match="float64"):
        there.double()
    with pytest.raises(TypeError, match="numpy"):
        there.numpy()
    assert there.cpu().double().dtype == torch.float64
    assert there.to("cpu").device.type == "cpu"


def test_float64_is_computed_where_there_is_some():
    there = on_gpu(drawn(2, 3))
    found = in_float64(there)
    assert (found.dtype, found.device.type) == (torch.float64, "cpu")
    assert torch.equal(found, drawn(2, 3).double())


def test_lpips_is_read_from_any_gpu():
    a, b = drawn(2, 3, 3, 8, 8)[0], drawn(2, 3, 3, 8, 8)[1]
    distance = partial(lpips_distance, Answering())
    found = as_array(distance, Pairs(originals=a, reconstructions=b))
    assert (found.shape, found.dtype) == ((3,), np.float64)


def test_a_training_is_watched_on_any_gpu():
    here = [drawn(4, 5), drawn(4, 5) + 1, drawn(4, 5) + 2]
    seen, known = distances(*map(on_gpu, here)), distances(*here)
    assert seen.violated(0.5) == known.violated(0.5)
    assert seen.accuracy() == known.accuracy() == 1.0


def test_a_masked_gradient_is_recovered_on_any_gpu():
    g = {"head.weight": on_gpu(drawn(2, 3)), "head.bias": on_gpu(drawn(2))}
    key = MaskKey(
        scales={name: torch.ones_like(part) for name, part in g.items()}, gamma=0.1, v=0.1
    )
    upload = ClientUpload(g=g, sigma=g, beta=dict(list(g.items())[:1]))
    assert recover(key, upload, Pbpfl(tolerance=1e-3)).condition >= 1


def test_the_metric_of_torchmetrics_sums_on_any_gpu():
    class Distance(nn.Module):
        def forward(self, originals, reconstructions):
            return on_gpu((originals - reconstructions).abs().mean((1, 2, 3)))

    a, b = drawn(2, 4, 3, 8, 8)
    metric = SemSim(Distance())
    metric.update(b, a)
    metric.compute()
    metric._apply(on_gpu)  # what `.to("mps")` does
    metric.update(b, a)
    found = metric.compute()
    assert (found.dtype, found.device.type) == (torch.float64, "cpu")
    assert found.item() == pytest.approx((a - b).abs().mean().item())


def moves_too_late():
    """Where the product makes a float64 of what it moves to the CPU only then."""
    for path in sorted(PRODUCT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "cpu":
                within = [one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)]
                if "double" in within:
                    yield f"{path.relative_to(PRODUCT)}:{node.lineno}"


def test_nothing_is_made_float64_before_it_moves_to_the_cpu():
    assert list(moves_too_late()) == []
