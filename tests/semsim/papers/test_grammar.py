"""Sentences of the grammar: their German is right, none comes twice, the seed decides."""

import random

import pytest

from semsim.base.errors import SettingsError
from semsim.papers.sentences import (
    CONTENT,
    LONGEST,
    Noun,
    drawn,
    noun_phrase,
    sentences,
    vocabularies,
)

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
