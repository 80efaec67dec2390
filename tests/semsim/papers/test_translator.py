"""The translator's parts: what crosses, what each place may see, and that it learns."""

from dataclasses import replace

import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.papers.sentences import (
    BEGIN,
    END,
    LONGEST,
    PAD,
    PLACES,
    Translator,
    in_words,
    joined,
    numbered,
    sentences,
    translate,
    vocabularies,
    waves,
    words_right,
)
from semsim.systems.split.attacks import imitation
from semsim.systems.split.defences import Ensembler, Single, Undefended
from semsim.systems.split.networks import feature_shape, make_parts, observe, task_of
from semsim.systems.split.plan import ShadowAttack, SplitTrainSettings
from semsim.systems.split.training import Bench

NETWORK = Translator(width=16, heads=2)
TINY = SplitTrainSettings(epochs=1, ensemble_epochs=1, batch_size=32)


@pytest.fixture(scope="module")
def pairs():
    return numbered(sentences(64, 0))


@pytest.fixture
def bench(pairs):
    cpu = torch.device("cpu")
    return Bench(network=NETWORK, data=pairs, settings=TINY, seed=0, device=cpu)


def test_words_are_numbered_and_come_back(pairs):
    english, german = vocabularies()
    assert in_words(pairs.source, english) == [pair.english for pair in pairs.pairs]
    assert in_words(pairs.target, german) == [pair.german for pair in pairs.pairs]
    assert pairs.source.shape == (64, PLACES) == (64, LONGEST + 1)
    assert in_words(torch.tensor([[PAD, 3, BEGIN, END, 4]]), english) == [english[:1]]


def test_the_translation_is_given_one_place_later_and_asked_for_to_its_end(pairs):
    inputs, labels = pairs.inputs, pairs.labels
    assert torch.equal(inputs[:, :PLACES], pairs.source)
    assert (inputs[:, PLACES] == BEGIN).all()
    assert torch.equal(inputs[:, PLACES + 1 :], pairs.target[:, :-1])
    for row, pair in zip(labels, pairs.pairs, strict=True):
        assert int((row >= 0).sum()) == len(pair.german) + 1  # and its end
    assert torch.equal(pairs.pick([5, 2]).source, pairs.source[[5, 2]])


@pytest.mark.parametrize("h", [1, 2, 3, 4])
def test_every_cut_gives_parts_that_fit_together(h, pairs):
    task, network = task_of(pairs), replace(NETWORK, h=h, layers=2)
    parts = make_parts(network, task, 0, copies=2)
    sent = parts.head(pairs.inputs[:3])
    assert sent.shape == (3, 16, 2 * PLACES)
    assert feature_shape(parts.head, task) == (16, 2 * PLACES)
    answer = parts.body(sent)
    assert answer.shape == (3, 16, PLACES)
    assert parts.tail(torch.cat([answer] * 2, dim=1)).shape == (3, task.classes, PLACES)
    with pytest.raises(SettingsError, match="6 units"):
        make_parts(replace(network, h=5), task, 0)


def test_what_crosses_is_one_vector_a_word_and_its_place(pairs):
    head = make_parts(NETWORK, task_of(pairs), 0).head
    sent, source = head(pairs.inputs), pairs.source
    vectors = sent[:, :, 0] - waves(PLACES, 16)[0]
    for place in (3, 4):
        same = source[:, 0] == source[:, place]
        assert same.any()
        own = sent[:, :, place] - waves(PLACES, 16)[place]
        assert torch.allclose(own[same], vectors[same], atol=1e-5)
    assert not torch.allclose(vectors[source[:, 0] != source[0, 0]][0], vectors[0], atol=1e-2)


@pytest.mark.parametrize("kind", ["system", "shadow"])
def test_no_place_sees_the_words_of_the_translation_that_it_is_asked_for(kind, bench, pairs):
    """Else a training copies its answers; the attacker's shadow may not either."""
    network = Undefended()(bench)
    if kind == "shadow":
        seen = observe(network, pairs.inputs, NETWORK, pairs, torch.Generator())
        attack = ShadowAttack(epochs=1, decoder_epochs=1)
        network = imitation(attack, seen, 0, lambda progress: None).eval()
    before, after = pairs.target[:4].clone(), pairs.target[:4].clone()
    after[:, 5:] = 7
    with torch.no_grad():
        first, second = (network(joined(pairs.source[:4], one)) for one in (before, after))
    assert torch.allclose(first[:, :, :6], second[:, :, :6], atol=1e-5)
    assert not torch.allclose(first[:, :, 6:], second[:, :, 6:], atol=1e-3)


def test_a_translation_is_what_is_likeliest_at_each_of_its_places(bench, pairs):
    system = Undefended()(bench)
    made = translate(system, pairs.source, PLACES)
    with torch.no_grad():
        likeliest = system(joined(pairs.source, made)).argmax(dim=1)
    for row, best in zip(made.tolist(), likeliest.tolist(), strict=True):
        until = row.index(END) + 1 if END in row else len(row)
        assert row[:until] == best[:until]
        assert set(row[until:]) <= {PAD}


def test_a_defence_adds_its_fixed_noise_to_words_and_its_bodies_are_those_that_count(bench, pairs):
    single, both = Single(sigma=0.5)(bench), Ensembler(bodies=3, selected=2)(bench)
    assert single.noise.fixed.shape == (16, 2 * PLACES)
    with torch.no_grad():
        noise = single.send(pairs.inputs) - single.head(pairs.inputs)
    assert torch.allclose(noise, single.noise.fixed.expand_as(noise), atol=1e-5)
    assert single.noise.fixed.std().item() == pytest.approx(0.5, rel=0.1)
    assert len(both.selected) == 2
    assert both(pairs.inputs[:2]).shape == (2, task_of(pairs).classes, PLACES)


def test_it_learns_to_translate(bench, pairs):
    """On the sentences it learns from: were the mask, the shift or the loss wrong, it could not."""
    settings = SplitTrainSettings(epochs=120, batch_size=32, lr=1e-2)
    few = replace(bench, data=pairs.pick(range(32)), settings=settings)
    system = Undefended()(replace(few, network=replace(NETWORK, width=32, drop=0.0)))
    made = in_words(translate(system, pairs.source[:32], PLACES), vocabularies()[1])
    assert words_right([pair.german for pair in pairs.pairs[:32]], made) > 0.9
