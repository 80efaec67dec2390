"""The metric of torchmetrics, as torchmetrics tests its own."""

import copy
import os
import pickle

import copies
import pytest
import torch
from helpers import ROOT, limit

import semsim
from semsim.base.errors import DataError

DEMO = str(ROOT / "checkpoints" / "demo")
SIZES = (3, 1, 4)  # of batches: a mean of means would be another number


def batches():
    draw = torch.Generator().manual_seed(0)
    return [[torch.rand(n, 3, 32, 32, generator=draw) for _ in range(2)] for n in SIZES]


def expected(parts):
    network = semsim.SemSim.from_pretrained(DEMO)
    return torch.cat([network(x, y) for y, x in parts]).double().mean()


@pytest.fixture
def metric():
    return semsim.torchmetrics.SemSim(DEMO)


def test_compute_is_the_mean_over_all_pairs(metric):
    for part in batches():
        metric.update(*part)
    assert torch.allclose(metric.compute(), expected(batches()), rtol=1e-6)


def test_forward_is_the_value_of_its_batch_and_counts_for_the_whole(metric):
    for part in batches():
        assert torch.allclose(metric(*part), expected([part]), rtol=1e-6)
    assert torch.allclose(metric.compute(), expected(batches()), rtol=1e-6)


def test_reset_forgets(metric):
    first, second, _ = batches()
    metric.update(*first)
    metric.reset()
    metric.update(*second)
    assert torch.allclose(metric.compute(), expected([second]), rtol=1e-6)


@pytest.mark.parametrize(
    "again", [lambda m: m.clone(), copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_copy_has_what_was_seen_and_goes_its_own_way(metric, again):
    first, second, _ = batches()
    metric.update(*first)
    other = again(metric)
    assert torch.equal(other.compute(), metric.compute())
    other.update(*second)
    assert torch.allclose(other.compute(), expected([first, second]), rtol=1e-6)
    metric._computed = None
    assert torch.allclose(metric.compute(), expected([first]), rtol=1e-6)


def test_it_goes_into_a_collection(metric):
    from torchmetrics import MeanMetric, MetricCollection

    both = MetricCollection({"semsim": metric})
    both.update(*batches()[0])
    assert set(both.compute()) == {"semsim"}
    assert MeanMetric().higher_is_better is None
    assert metric.higher_is_better is False


def test_wrong_images_are_refused_and_leave_nothing_behind(metric):
    first = batches()[0]
    metric.update(*first)
    with pytest.raises(DataError):
        metric.update(first[0] * 2, first[1])
    assert torch.allclose(metric.compute(), expected([first]), rtol=1e-6)


def test_its_value_can_be_differentiated(metric):
    y, x = batches()[0]
    metric(y.requires_grad_(), x).backward()
    assert y.grad.abs().sum() > 0


TWO = """
import os, sys, torch
from semsim.torchmetrics import SemSim  # once for both
port, child = sys.argv[1], os.fork()
rank = int(child == 0)
torch.distributed.init_process_group(
    "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
)
draw = torch.Generator().manual_seed(0)
parts = [[torch.rand(n, 3, 32, 32, generator=draw) for _ in range(2)] for n in (3, 1, 4)]
metric = SemSim("checkpoints/demo")
for part in parts[rank::2]:
    metric.update(*part)
os.write(1, f"{metric.compute().item()}\\n".encode())  # at once, as the other writes there too
torch.distributed.destroy_process_group()
failed = child and os.waitpid(child, 0)[1]
os._exit(bool(failed))  # gloo's threads now and then abort an interpreter that is closing
"""


def test_two_processes_reduce_to_the_mean_over_all_pairs(port):
    done = copies.run(["-c", TWO, str(port)], cwd=ROOT, env=os.environ, timeout=limit(120))
    assert done.returncode == 0, done.stderr
    wanted = pytest.approx(expected(batches()).item(), rel=1e-6)
    assert [float(said) for said in done.stdout.split()] == [wanted, wanted]
