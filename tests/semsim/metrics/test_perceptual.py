import lpips as reference
import pytest
import torch
from made_weights import make_checkpoints
from torchvision.models import squeezenet1_1

from semsim.base.errors import DataError, WeightsError
from semsim.metrics import Pairs
from semsim.metrics.perceptual import Lpips, load_lpips, lpips_distance


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    return make_checkpoints(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def model(resources):
    return load_lpips("squeeze", resources.checkpoints / "squeezenet1_1.pth")


def images(n=3, side=20, seed=0):
    return torch.rand(2, n, 3, side, side, generator=torch.Generator().manual_seed(seed))


def test_backbone_and_linear_weights_come_from_their_files(model, resources):
    file = torch.load(resources.checkpoints / "squeezenet1_1.pth", weights_only=True)
    assert torch.equal(model.net.slice1[0].weight, file["features.0.weight"])
    assert torch.equal(model.net.slice7[0].expand3x3.bias, file["features.12.expand3x3.bias"])
    # the package's own loader of the same linear weights, with a backbone that is not looked at
    theirs = reference.LPIPS(net="squeeze", pnet_rand=True, verbose=False)
    for ours, other in zip(model.lins, theirs.lins, strict=True):
        assert torch.equal(ours.model[1].weight, other.model[1].weight)


def test_the_networks_range_is_made_from_ours(model):
    x, y = images()
    expected = model(x, y, normalize=True).flatten()
    assert torch.allclose(lpips_distance(model, x, y), expected, rtol=1e-5, atol=0)


def test_an_image_is_at_no_distance_from_itself(model):
    x, _ = images()
    assert lpips_distance(model, x, x).tolist() == pytest.approx([0, 0, 0], abs=1e-12)


def test_a_score_does_not_depend_on_batch_mates_nor_order(model):
    x, y = images(n=40, seed=1)  # more than one batch
    together = lpips_distance(model, x, y)
    assert together.shape == (40,)
    # convolutions sum in another order for another batch size: single precision
    one, turned = lpips_distance(model, x[5:6], y[5:6]), lpips_distance(model, x.flip(0), y.flip(0))
    assert torch.allclose(one, together[5:6], rtol=1e-4, atol=0)
    assert torch.allclose(turned, together.flip(0), rtol=1e-4, atol=0)


def test_loading_leaves_the_random_state_alone(resources):
    before = torch.get_rng_state()
    load_lpips("squeeze", resources.checkpoints / "squeezenet1_1.pth")
    assert torch.equal(torch.get_rng_state(), before)


def test_too_small_an_image_is_refused(resources):
    judge = Lpips(net="squeeze").prepare(resources)
    x, y = images(side=17)
    assert judge(Pairs(originals=x, reconstructions=y)).values.shape == (3,)
    x, y = images(side=16)
    with pytest.raises(DataError, match="at least 17 pixels"):
        judge(Pairs(originals=x, reconstructions=y))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda weights: weights.pop("features.0.weight"),
        lambda weights: weights.update({"features.0.weight": torch.zeros(1)}),
    ],
)
def test_a_backbone_that_does_not_fit_is_refused(tmp_path, spoil):
    weights = squeezenet1_1(weights=None).state_dict()
    spoil(weights)
    torch.save(weights, tmp_path / "net.pth")
    with pytest.raises(WeightsError, match="does not fit LPIPS's squeeze backbone"):
        load_lpips("squeeze", tmp_path / "net.pth")


def test_a_file_that_holds_something_else_is_refused(tmp_path):
    torch.save([1, 2], tmp_path / "net.pth")
    with pytest.raises(WeightsError, match="holds a list"):
        load_lpips("squeeze", tmp_path / "net.pth")
