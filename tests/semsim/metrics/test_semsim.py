import numpy as np
import pytest
import torch
from made_weights import make_classifier, make_semsim

from semsim.base.errors import SettingsError, WeightsError
from semsim.metrics import Pairs, Resources
from semsim.metrics.network import SemSimModel
from semsim.metrics.semsim import SemSimDistance


def images(n=3):
    return torch.rand(2, n, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def test_it_is_the_distance_of_features(tmp_path):
    model = make_semsim(tmp_path / "tiny.safetensors")
    x, y = images()
    judge = SemSimDistance(checkpoint="tiny").prepare(Resources(checkpoints=tmp_path))
    values = judge(Pairs(originals=x, reconstructions=y)).values
    with torch.no_grad():
        expected = [
            float((model(a[None]) - model(b[None])).norm()) for a, b in zip(x, y, strict=True)
        ]
    assert values.dtype == np.float64
    assert values == pytest.approx(expected, rel=1e-4)
    assert judge(Pairs(originals=x, reconstructions=x)).values.tolist() == [0, 0, 0]


def test_originals_that_sets_share_are_passed_once(tmp_path):
    make_semsim(tmp_path / "tiny.safetensors")
    x, y = images()
    passed = []
    watch = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, given: (
            passed.append(len(given[0])) if isinstance(module, SemSimModel) else None
        )
    )
    try:
        judge = SemSimDistance(checkpoint="tiny").prepare(Resources(checkpoints=tmp_path))
        judge(Pairs(originals=x, reconstructions=y))
        judge(Pairs(originals=x.clone(), reconstructions=1 - y))
    finally:
        watch.remove()
    assert sum(passed) == 3 * len(x)


def test_a_checkpoint_that_is_not_there_says_where_it_belongs(tmp_path):
    with pytest.raises(WeightsError, match=r"No SemSim called 'none'.*none.safetensors"):
        SemSimDistance(checkpoint="none").files(Resources(checkpoints=tmp_path))


def test_another_kind_of_file_is_refused(tmp_path):
    make_classifier(tmp_path / "other.safetensors")
    with pytest.raises(WeightsError, match="has format 'semsim-classifier"):
        SemSimDistance(checkpoint="other").prepare(Resources(checkpoints=tmp_path))


def test_a_name_is_never_a_path():
    with pytest.raises(SettingsError):
        SemSimDistance(checkpoint="../x")
