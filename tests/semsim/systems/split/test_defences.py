from dataclasses import fields, replace

import pytest
import torch
from torch import nn

from semsim.base.errors import SettingsError
from semsim.systems.split import SPLIT_DEFENCES
from semsim.systems.split.defences import (
    DropoutEnsemble,
    DropoutSingle,
    Ensembler,
    Shredder,
    Single,
    Undefended,
    draw_selector,
    ensembler_loss,
)
from semsim.systems.split.networks import FeatureObservation, observe, select

SMALL = {
    "dr-ensemble": {"bodies": 2},
    "ensembler": {"bodies": 3, "selected": 2},
}


def weights(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(first, second):
    assert first.keys() == second.keys()
    return all(torch.equal(value, second[name]) for name, value in first.items())


def seen_by_server(system, bench, images):
    rng = torch.Generator().manual_seed(5)
    return observe(system, images, bench.network, bench.data, rng)


@pytest.mark.parametrize(("bodies", "selected"), [(1, 1), (4, 2), (10, 4), (10, 3), (10, 10)])
def test_the_selector_sums_to_one_over_as_many_bodies_as_it_should(bodies, selected):
    drawn = draw_selector(bodies, selected, seed=7)
    assert drawn.shape == (bodies,)
    assert int((drawn > 0).sum()) == selected
    assert drawn.sum().item() == pytest.approx(1, abs=1e-6)  # of float32
    assert torch.equal(drawn, draw_selector(bodies, selected, seed=7))


def test_selectors_of_other_seeds_differ():
    assert len({tuple(draw_selector(10, 4, seed).tolist()) for seed in range(20)}) > 10


def test_the_selector_is_equation_1():
    answers = {0: torch.tensor([[1.0, 2.0]]), 2: torch.tensor([[4.0, 8.0]])}
    joined = select(answers, torch.tensor([0.5, 0.0, 0.5]))
    assert joined.tolist() == [[0.5, 1.0, 0.0, 0.0, 2.0, 4.0]]


def test_leaving_out_bodies_of_weight_zero_changes_no_answer():
    answers = {place: torch.randn(3, 2) for place in range(3)}
    selector = torch.tensor([0.5, 0.0, 0.5])
    some = {place: answers[place] for place in (0, 2)}
    assert torch.equal(select(answers, selector), select(some, selector))


def test_equation_3_is_what_one_works_out_by_hand():
    logits = torch.tensor([[0.0, 0.0], [0.0, 0.0]])  # cross-entropy is log 2 whatever the labels
    own = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    near = torch.tensor([[3.0, 0.0], [1.0, 1.0]])  # cosines 1 and 1/√2, mean 0.853553
    far = torch.tensor([[0.0, 1.0], [5.0, 0.0]])  # cosines 0 and 0
    loss = ensembler_loss(logits, torch.tensor([0, 1]), own, [far, near], 0.4)
    assert loss.item() == pytest.approx(0.693147 + 0.4 * 0.853553, abs=1e-5)


def test_equation_3_takes_the_largest_of_means_not_the_mean_of_largest():
    own = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # cosines 1, 0
    second = torch.tensor([[0.0, 1.0], [1.0, 0.0]])  # cosines 0, 1
    logits = torch.zeros(2, 2)
    loss = ensembler_loss(logits, torch.tensor([0, 1]), own, [first, second], 1.0)
    assert loss.item() == pytest.approx(0.693147 + 0.5, abs=1e-5)


def test_frozen_bodies_stay_bit_equal_in_stage_2(bench, monkeypatch):
    from semsim.systems.split import defences

    kept = []
    second_stage = defences._second_stage

    def spy(bench, defence, heads, bodies, report):
        kept.extend(weights(module) for module in [*heads, *bodies])
        system = second_stage(bench, defence, heads, bodies, report)
        after = [weights(module) for module in [*heads, *bodies]]
        assert all(same(a, b) for a, b in zip(kept, after, strict=True))
        return system

    monkeypatch.setattr(defences, "_second_stage", spy)
    system = Ensembler(bodies=3, selected=2)(bench)
    assert len(kept) == 6
    assert all(same(k, weights(b)) for k, b in zip(kept[3:], system.bodies, strict=True))


def test_stage_2_trains_a_new_head_and_tail(bench):
    long = replace(bench, settings=replace(bench.settings, ensemble_epochs=2))
    short, longer = (Ensembler(bodies=2, selected=1)(b) for b in (bench, long))
    assert same(weights(short.bodies), weights(longer.bodies))
    for part in ("head", "tail"):
        assert not same(weights(getattr(short, part)), weights(getattr(longer, part)))


def test_each_network_of_stage_1_has_its_own_noise_and_weights(bench):
    system = Ensembler(bodies=3, selected=2)(bench)
    first, second, third = (weights(body) for body in system.bodies)
    assert not same(first, second)
    assert not same(second, third)


def test_the_fixed_noise_is_the_same_in_training_and_inference(bench, digits):
    seen = []
    system = Single(sigma=0.5)(bench)

    def note(module, inputs, output):
        seen.append(output - inputs[0])

    system.noise.register_forward_hook(note)
    system.train()(digits[0].images[:2])
    system.eval()(digits[1].images[:2])
    # Adding and subtracting rounds; the noise itself is of size 0.5.
    for added in seen:
        expected = system.noise.fixed.expand_as(added)
        torch.testing.assert_close(added, expected, atol=1e-5, rtol=0)
    assert system.noise.fixed.std().item() == pytest.approx(0.5, rel=0.2)  # of 256 draws


def test_training_leaves_the_fixed_noise_alone(bench):
    long = replace(bench, settings=replace(bench.settings, epochs=2))
    first, second = Single(sigma=0.5)(bench), Single(sigma=0.5)(long)
    assert torch.equal(first.noise.fixed, second.noise.fixed)


def test_dropout_of_nothing_is_single_without_noise(bench):
    dropped, single = DropoutSingle(p=0.0)(bench), Single(sigma=0.0)(bench)
    assert same(weights(dropped), weights(single))


def test_dropout_changes_the_training(bench):
    dropped, single = DropoutSingle(p=0.5)(bench), Single(sigma=0.0)(bench)
    assert not same(weights(dropped), weights(single))


def test_an_ensemble_of_one_without_dropout_is_a_single_network(bench):
    ensemble, single = DropoutEnsemble(bodies=1, p=0.0)(bench), Undefended()(bench)
    assert same(weights(ensemble), weights(single))


def test_shredder_is_the_undefended_network_with_noise_that_changes(bench, digits):
    plain, noisy = Undefended()(bench), Shredder(sigma=0.3)(bench)
    assert same(weights(plain.bodies), weights(noisy.bodies))
    images = digits[1].images[:4]
    first, again = noisy.send(images), noisy.send(images)
    assert not torch.equal(first, again)
    assert (first - again).std().item() == pytest.approx(0.3 * 2**0.5, rel=0.1)


def test_the_server_sees_features_public_images_and_its_own_bodies_and_nothing_else(bench, digits):
    system = Ensembler(bodies=3, selected=2)(bench)
    seen = seen_by_server(system, bench, digits[1].images)
    assert {f.name for f in fields(FeatureObservation)} == {
        "features",
        "bodies",
        "network",
        "public",
    }
    secret = [system.head, system.tail, system.noise, system]
    reachable = [module for body in seen.bodies for module in body.modules()]
    assert not {id(m) for m in secret} & {id(m) for m in reachable}
    secrets = [system.selector, system.noise.fixed, *system.head.parameters()]
    secrets += [*system.tail.parameters(), digits[1].images]
    tensors = [seen.features, seen.public.images]
    tensors += [value for body in seen.bodies for value in body.state_dict(keep_vars=True).values()]
    places = {tensor.data_ptr() for tensor in tensors if tensor.numel()}
    assert not places & {tensor.data_ptr() for tensor in secrets}
    assert not any(t.shape == s.shape and torch.equal(t, s) for t in tensors for s in secrets)


def test_another_selector_changes_nothing_the_server_sees(bench, digits):
    system = Ensembler(bodies=3, selected=2)(bench)
    before = seen_by_server(system, bench, digits[1].images)
    kept = [weights(body) for body in before.bodies]
    system.selector = torch.roll(system.selector, 1)
    after = seen_by_server(system, bench, digits[1].images)
    assert torch.equal(before.features, after.features)
    assert all(same(a, weights(b)) for a, b in zip(kept, after.bodies, strict=True))


@pytest.mark.parametrize("name", SPLIT_DEFENCES)
def test_a_defence_is_decided_by_its_seed_and_reports_to_its_end(name, bench, digits):
    told = []
    defence = SPLIT_DEFENCES[name](**SMALL.get(name, {}))
    before = torch.random.get_rng_state()
    first = defence(bench, told.append)
    assert torch.equal(before, torch.random.get_rng_state())
    assert told[-1].done == told[-1].total
    assert not first.training
    assert same(weights(first), weights(defence(bench)))
    other = defence(replace(bench, seed=1))
    assert not same(weights(first), weights(other))
    assert first.selector.sum().item() == pytest.approx(1)
    images = digits[1].images
    one, two = (seen_by_server(first, bench, images).features for _ in range(2))
    assert torch.equal(one, two)
    assert first(images).shape == (len(images), 10)
    assert isinstance(first.bodies, nn.ModuleList)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("ensembler", {"bodies": 3, "selected": 4}, "selected must lie"),
        ("dr-ensemble", {"bodies": 0}, "bodies must be at least 1; got 0"),
        *((name, {"p": 1.5}, "p must be at most 1") for name in ("dr-single", "dr-ensemble")),
        *((name, {"p": -0.5}, "p must be 0 or more") for name in ("dr-single", "dr-ensemble")),
        *(
            (name, {"sigma": -1.0}, "sigma must be 0 or more; got -1")
            for name in SPLIT_DEFENCES
            if name != "none"
        ),
    ],
)
def test_impossible_settings_are_refused_before_any_training(name, settings, words):
    with pytest.raises(SettingsError, match=words):
        SPLIT_DEFENCES[name](**settings)
