"""Sentences and their German, the translator's parts, and scores of what was read."""

import math
import random
from dataclasses import replace

import pytest
import torch
from torchmetrics.functional.text import bleu_score

from semsim.base.errors import SettingsError
from semsim.papers.sentences import (
    BEGIN,
    CONTENT,
    END,
    LONGEST,
    PAD,
    PLACES,
    Noun,
    Translator,
    bleu,
    drawn,
    in_words,
    joined,
    noun_phrase,
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

MAN, WOMAN, GIRL = (
    Noun("man", "Mann", "m", "he"),
    Noun("woman", "Frau", "f", "she"),
    Noun("girl", "Mädchen", "n", "she"),
)


@pytest.mark.parametrize(
    ("noun", "article", "case", "german"),
    [
        (MAN, "a", "nominative", "ein junger Mann"),
        (WOMAN, "a", "nominative", "eine junge Frau"),
        (GIRL, "a", "nominative", "ein junges Mädchen"),
        (MAN, "the", "nominative", "der junge Mann"),
        (GIRL, "the", "nominative", "das junge Mädchen"),
        (MAN, "a", "accusative", "einen jungen Mann"),
        (MAN, "the", "accusative", "den jungen Mann"),
        (WOMAN, "the", "accusative", "die junge Frau"),
        (GIRL, "a", "accusative", "ein junges Mädchen"),
    ],
)
def test_articles_and_adjectives_agree_with_gender_and_case(noun, article, case, german):
    pair = noun_phrase(noun, article, "young", case)
    assert " ".join(pair.german) == german
    assert " ".join(pair.english) == f"{article} young {noun.english}"
    assert len(noun_phrase(noun, article, "", case).german) == 2


def test_the_verb_of_a_subordinate_clause_comes_last():
    pairs = [pair for pair in sentences(300, 0) if "while" in pair.english]
    with_object = [pair for pair in pairs if pair.english[-1] not in _verbs()]
    assert len(with_object) > 50
    for pair in with_object:
        later = pair.german[pair.german.index("während") :]
        assert pair.german[pair.german.index("während") - 1] == ","
        assert later[-1] in _german_verbs()
        assert pair.english[pair.english.index("while") + 2] in _verbs()


def _verbs():
    return {word for word in CONTENT if word.endswith("s")}


def _german_verbs():
    without = {"schläft", "läuft", "wartet", "tanzt", "singt", "lächelt", "skatet", "arbeitet"}
    return without | {"sieht", "hält", "trägt", "zeichnet", "findet", "kauft", "putzt", "liebt"}


def test_no_sentence_comes_twice_and_the_seed_decides_which_come():
    first, again, other = (sentences(400, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len({pair.english for pair in first}) == 400
    assert sentences(100, 1) == first[:100]


def test_all_words_are_in_the_vocabularies_and_no_sentence_is_too_long():
    english, german = vocabularies()
    rng = random.Random(3)
    found = [drawn(rng) for _ in range(3_000)]
    assert {word for pair in found for word in pair.english} == set(english)
    assert {word for pair in found for word in pair.german} <= set(german)
    assert max(len(pair.german) for pair in found) == LONGEST
    assert max(len(pair.english) for pair in found) < LONGEST
    assert set(english) > CONTENT
    assert not CONTENT & {"a", "the", "while", "she", "in"}


def test_words_are_not_drawn_alike():
    """Counting needs that; were they alike, no word could be told from another by it."""
    firsts = [pair.english[0] for pair in sentences(1_000, 0)]
    assert firsts.count("a") > 1.3 * firsts.count("the")


def test_none_is_refused():
    with pytest.raises(SettingsError, match="at least one"):
        sentences(0, 0)


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


def test_words_count_at_their_place_only():
    originals = [("a", "girl", "sleeps"), ("the", "man", "runs")]
    found = [("a", "sleeps", "girl", "x"), ("the", "man")]
    assert words_right(originals, found) == pytest.approx(3 / 6)
    assert words_right(originals, found, {"girl", "man", "runs"}) == pytest.approx(1 / 3)
    assert math.isnan(words_right(originals, found, {"nobody"}))


@pytest.mark.parametrize("shift", [1, 2, 7])
def test_bleu_is_what_another_library_has(shift):
    """Each sentence against a mixture of itself and another, so that some of it is right."""
    originals = [pair.english for pair in sentences(60, 4)]
    found = [
        (*one[:5], *originals[(n + shift) % 60][5:]) if n % 3 else one
        for n, one in enumerate(originals)
    ]
    theirs = bleu_score([" ".join(one) for one in found], [[" ".join(one)] for one in originals])
    assert 0.3 < bleu(originals, found) < 1
    assert bleu(originals, found) == pytest.approx(theirs.item(), abs=1e-5)


def test_short_answers_are_punished_and_nothing_right_is_nothing():
    whole = [("a", "b", "c", "d", "e", "f", "g", "h")]
    assert bleu(whole, whole) == pytest.approx(1)
    assert bleu(whole, [whole[0][:4]]) == pytest.approx(math.exp(1 - 8 / 4))
    assert bleu(whole, [("x", "y", "z", "w", "v")]) == 0
    assert bleu(whole, [()]) == 0
