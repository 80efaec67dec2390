"""`semsim.attack` on any classifier, and as a campaign does it."""

import numpy as np
import pytest
import torch
from torch import nn

import semsim
from semsim.attacks.as_text import read_attack
from semsim.base.errors import DataError, SettingsError, UnknownNameError
from semsim.campaign.work import attack_images
from semsim.defences import read_strategy
from semsim.images import to_uint8
from semsim.targets.lenet import CNN4
from semsim.targets.model import TargetModel
from semsim.types import LabelledImages

FAST = "invgrad:fast,steps=3"


def image(seed=0):
    return torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(seed))


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(),
        nn.Linear(4 * 7 * 7, 5),
    )  # fmt: skip


def test_any_classifier_gives_a_picture_and_is_left_alone():
    model = network().train()
    model[0].requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = semsim.attack(model, image(), 3, FAST, device="cpu")
    assert found.image.shape == (3, 16, 16)
    assert 0 <= found.image.min() <= found.image.max() <= 1
    assert model.training
    assert model[2].inplace
    learns = [weight.requires_grad for weight in model.parameters()]
    assert learns == [False, False, True, True, True, True]
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_an_attack_finds_the_image_behind_a_linear_layer():
    """Its gradient is the image times a number, so that a good attack has it nearly."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 5))
    smooth = nn.functional.interpolate(image()[None, :, :4, :4], 16, mode="bilinear")[0]
    found = semsim.attack(model, smooth, 1, "prior", device="cpu")
    assert found.residual < 0.1 * found.grey_residual
    assert (found.image - smooth).abs().mean() < 0.05


class Attentive(nn.Module):
    """Rows of the picture as a sequence, each looking at all."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Linear(3 * 16, 8)
        self.look = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.last = nn.Linear(8, 5)

    def forward(self, images):
        return self.last(self.look(self.rows(images.transpose(1, 2).flatten(2))).mean(1))


class WithAuxiliaryHead(nn.Module):
    """As an Inception has one, which gives nothing to the logits."""

    def __init__(self):
        super().__init__()
        self.main, self.auxiliary = network(), nn.Linear(3, 5)

    def forward(self, images):
        return self.main(images)


ANY = {
    "attention": Attentive,
    "a hard sigmoid": lambda: nn.Sequential(nn.Hardsigmoid(), *network()),
    "a hard swish": lambda: nn.Sequential(nn.Hardswish(inplace=True), *network()),
    "an idle head": WithAuxiliaryHead,
    "half precision": lambda: network().bfloat16(),
    "double precision": lambda: network().double(),
    "other normalisation of weights": lambda: nn.Sequential(
        nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(3 * 16 * 16, 5))
    ),
}


@pytest.mark.parametrize("attack", [FAST, "invgrad:steps=2", "prior:steps=2", "dlg:steps=2"])
@pytest.mark.parametrize("kind", ANY)
def test_a_classifier_may_have(kind, attack):
    torch.manual_seed(0)
    model = ANY[kind]()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = semsim.attack(model, image(), 3, attack, device="cpu")
    assert found.image.shape == (3, 16, 16)
    assert found.image.isfinite().all()
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(before[name], value) for name, value in after.items())


class Overwriting(nn.Module):
    """Adds to what its in-place activation has overwritten."""

    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.head = nn.Conv2d(3, 4, 16), nn.ReLU(True), nn.Linear(4, 5)

    def forward(self, images):
        features = self.conv(images).flatten(1)
        return self.head(self.relu(features) + features)


def test_a_model_that_a_copy_would_change_is_refused():
    torch.manual_seed(0)
    with pytest.raises(DataError, match="Take inplace=False"):
        semsim.attack(Overwriting(), image(), 3, FAST, device="cpu")


def test_an_idle_head_changes_nothing():
    asked = {"label": 3, "attack": "invgrad:steps=5", "device": "cpu"}
    torch.manual_seed(0)
    whole = WithAuxiliaryHead()
    found, plain = (semsim.attack(one, image(), **asked).image for one in (whole, whole.main))
    assert torch.equal(found, plain)


class OnlyFunctions(nn.Module):
    """Nothing in it to be learned."""

    def forward(self, images):
        return images.flatten(1)[:, :5]


class OutOfReach(Attentive):
    """A function whose slope has no slope, where no layer can be changed for another."""

    def forward(self, images):
        return nn.functional.hardsigmoid(super().forward(images))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (OnlyFunctions(), "no parameter"),
        (nn.Sequential(nn.Flatten(), nn.LazyLinear(5)), "cannot be copied"),
        (OutOfReach(), "cannot be differentiated twice"),
    ],
    ids=["nothing to learn", "not made yet", "no second derivative"],
)
def test_a_model_that_cannot_be_attacked_is_told(model, why):
    with pytest.raises(DataError, match=why):
        semsim.attack(model, image(), 0, FAST, device="cpu")


def test_it_is_what_a_campaign_computes():
    torch.manual_seed(0)
    target = TargetModel(
        CNN4(width=4), ["a", "b"], mean=[0.5] * 3, std=[0.3] * 3, size=(16, 16)
    ).eval()
    batch = LabelledImages(
        dataset="made",
        classes=("a", "b"),
        ids=("1",),
        images=image()[None],
        labels=torch.tensor([1]),
    )
    (expected,) = attack_images(target, batch, read_strategy("crop-flip"), read_attack(FAST), [7])
    mean, std = ([value] * 3 for value in (0.5, 0.3))
    plain = nn.Sequential(target.body, target.head)
    options = {"defence": "crop-flip", "mean": mean, "std": std, "seed": 7, "device": "cpu"}
    found = semsim.attack(plain, image(), 1, FAST, **options)
    assert (to_uint8(found.image) == expected.picture).all()


def test_the_same_seed_gives_the_same_picture():
    asked = {"attack": "invgrad:steps=2", "device": "cpu"}
    one, same, other = (
        semsim.attack(network(), image(), 0, seed=seed, **asked).image for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"image": image()[None]}, DataError),
        ({"image": image() * 2}, DataError),
        ({"image": torch.rand(3, 9, 9)}, DataError),
        ({"label": 5}, DataError),
        ({"mean": (0.5, 0.5)}, DataError),
        ({"std": (1, 0, 1)}, DataError),
        ({"model": torch.relu}, DataError),
        ({"shared": "nonsense"}, UnknownNameError),
        ({"attack": "nonsense"}, UnknownNameError),
        ({"attack": "invgrad:steps=many"}, SettingsError),
        ({"defence": "nonsense"}, UnknownNameError),
    ],
)
def test_what_cannot_be_attacked_is_told(wrong, error):
    asked = {"model": network(), "image": image(), "label": 0, "attack": FAST, "device": "cpu"}
    with pytest.raises(error):
        semsim.attack(**{**asked, **wrong})


class Adapted(nn.Module):
    """A frozen layer with a small one beside it that learns, as in LoRA."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3 * 16 * 16, 8), nn.Linear(8, 5)
        self.down, self.up = nn.Linear(3 * 16 * 16, 2, bias=False), nn.Linear(2, 8, bias=False)
        self.body.requires_grad_(False)
        self.head.requires_grad_(False)

    def forward(self, images):
        flat = images.flatten(1)
        return self.head(torch.tanh(self.body(flat) + self.up(self.down(flat))))


class Sequenced(nn.Module):
    """A recurrent layer over the rows, frozen, before a head that learns."""

    def __init__(self):
        super().__init__()
        self.rows, self.head = nn.LSTM(48, 8, batch_first=True), nn.Linear(8, 5)
        self.rows.requires_grad_(False)

    def forward(self, images):
        return self.head(self.rows(images.transpose(1, 2).flatten(2))[0][:, -1])


def without(*names):
    """A network of which the layers at these places are frozen."""
    made = network()
    for name in names:
        made[int(name)].requires_grad_(False)
    return made


def attention_without_its_rows():
    made = Attentive()
    made.rows.requires_grad_(False)
    made.look.requires_grad_(False)
    return made


def only_biases():
    made = network()
    for name, one in made.named_parameters():
        one.requires_grad_(name.endswith("bias"))
    return made


PARTLY = {
    "a head": lambda: without("0", "1"),
    "a body": lambda: without("4"),
    "biases": only_biases,
    "an adapter": Adapted,
    "a head behind a recurrent layer": Sequenced,
    "a head behind attention": attention_without_its_rows,
}


@pytest.mark.parametrize("attack", [FAST, "invgrad:restarts=2,steps=2", "prior:steps=2"])
@pytest.mark.parametrize("kind", PARTLY)
def test_only_what_learns_is_shared(kind, attack):
    """A frozen part changes neither picture nor distance: nobody shares its gradient."""
    torch.manual_seed(0)
    model = PARTLY[kind]()
    found = semsim.attack(model, image(), 3, attack, device="cpu")
    sizes = [(one.numel(), one.requires_grad) for one in model.parameters()]
    seen = sum(size for size, learns in sizes if learns) / sum(size for size, _ in sizes)
    assert 0 < seen < 1
    assert found.seen_parameters == pytest.approx(seen, abs=1e-12)
    named = [name for name, one in model.named_parameters() if one.requires_grad]
    model.requires_grad_(True)
    same = semsim.attack(model, image(), 3, attack, shared=named, device="cpu")
    assert torch.equal(same.image, found.image)
    whole = semsim.attack(model, image(), 3, attack, shared="all", device="cpu")
    assert whole.seen_parameters == 1
    assert whole.grey_residual != found.grey_residual


def test_the_distance_is_that_of_the_gradients_that_are_shared():
    """Of a head alone: the angle between its own gradients for the picture and for grey."""
    model = without("0", "1").eval()
    slopes = []
    for seen in (image(), torch.full((3, 16, 16), 0.5)):
        loss = nn.functional.cross_entropy(model(seen[None]), torch.tensor([3]))
        slopes.append(
            torch.cat([g.flatten() for g in torch.autograd.grad(loss, model[4].parameters())])
        )
    expected = 1 - nn.functional.cosine_similarity(*slopes, dim=0).item()
    found = semsim.attack(model, image(), 3, FAST, device="cpu")
    assert found.grey_residual == pytest.approx(expected, abs=1e-6)


def test_a_module_is_named_for_all_its_parameters():
    asked = {"label": 3, "attack": FAST, "device": "cpu"}
    one, both = (
        semsim.attack(network(), image(), shared=named, **asked)
        for named in ("4", ["4.weight", "4.bias"])
    )
    assert one.seen_parameters == both.seen_parameters < 1
    assert torch.equal(one.image, both.image)


@pytest.mark.parametrize("asked", [{"shared": []}, {"model": network().requires_grad_(False)}])
def test_where_nothing_is_shared_nothing_is_attacked(asked):
    with pytest.raises(DataError, match=r"No parameter of the model is shared.*shared="):
        semsim.attack(**{"model": network(), "image": image(), "label": 3, **asked})


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_are_computed_whatever_mode_it_is_called_in(mode):
    found = semsim.attack(network(), image(), 3, FAST, device="cpu")
    with mode():
        inside = semsim.attack(network(), image(), 3, FAST, device="cpu")
        assert not torch.is_grad_enabled()
    assert torch.equal(inside.image, found.image)
    assert not inside.image.is_inference()


@pytest.mark.parametrize("label", [1.0, True, None, "cat", np.True_, torch.tensor(True), [1]])
def test_a_label_is_a_whole_number(label):
    with pytest.raises(DataError, match=r"label must be a whole number from 0 to 4.*got"):
        semsim.attack(network(), image(), label, FAST, device="cpu")


def test_a_whole_number_may_come_from_numpy_or_torch():
    asked = {"attack": FAST, "device": "cpu"}
    one, *others = (
        semsim.attack(network(), image(), label, **asked).image
        for label in (3, np.int64(3), torch.tensor(3))
    )
    assert all(torch.equal(one, other) for other in others)


def test_one_logit_and_a_gradient_of_0_are_refused_before_the_first_step():
    told = []
    asked = {"attack": FAST, "device": "cpu", "report": told.append}
    one = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 1))
    dead = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 4), nn.ReLU(), nn.Linear(4, 5))
    nn.init.constant_(dead[1].bias, -1e3)
    broken = network()
    nn.init.constant_(broken[4].weight, torch.nan)
    for model, why in ((one, "one logit"), (dead, "is 0"), (broken, "not finite")):
        with pytest.raises(DataError, match=f"gradient.*{why}|{why}.*gradient"):
            semsim.attack(model, image(), 0, shared="1" if model is dead else None, **asked)
    assert told == []


def test_two_logits_of_one_have_its_binary_cross_entropy():
    """The advice in the refusal of one logit works."""
    logit = torch.linspace(-3, 3, 7)[:, None]
    two = torch.cat([-logit, logit], 1) / 2
    for label in (0, 1):
        expected = nn.functional.binary_cross_entropy_with_logits(
            logit[:, 0], torch.full((7,), float(label)), reduction="none"
        )
        found = nn.functional.cross_entropy(two, torch.full((7,), label), reduction="none")
        assert torch.allclose(found, expected)


def test_an_image_in_half_precision_counts_as_float32():
    found = semsim.attack(network(), image().half(), 3, FAST, device="cpu")
    same = semsim.attack(network(), image().half().float(), 3, FAST, device="cpu")
    assert torch.equal(found.image, same.image)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ((image() * 255).byte(), r"torch.uint8 \(3, 16, 16\), values from 0 to 254"),
        (image().numpy(), r"ndarray of float32 \(3, 16, 16\), values from 0\.0"),
        (image()[None], r"torch.float32 \(1, 3, 16, 16\), values from"),
        (image() * 2, r"torch.float32 \(3, 16, 16\), values from 0\.\d+ to 1\.\d+"),
    ],
)
def test_the_refusal_of_an_image_names_what_came(wrong, words):
    with pytest.raises(DataError, match=f"image must .*; got {words}"):
        semsim.attack(network(), wrong, 3, FAST, device="cpu")
