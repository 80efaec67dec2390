"""Reading sentences from what crosses, by a decoder and by counting, and what guessing says."""

from dataclasses import replace

import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.papers.ensembler_sentences import counted, guesses, read_sentences
from semsim.papers.sentences import PLACES, Translator, numbered, sentences
from semsim.systems.split.defences import Ensembler, Shredder, Undefended
from semsim.systems.split.networks import observe
from semsim.systems.split.plan import ShadowAttack, SplitTrainSettings
from semsim.systems.split.training import Bench

TINY = ShadowAttack(epochs=1, decoder_epochs=1, batch_size=32)


@pytest.fixture(scope="module")
def pairs():
    found = sentences(800, 0)
    return numbered(found[:500]), numbered(found[500:])


@pytest.fixture(scope="module")
def bench(pairs):
    return Bench(
        network=Translator(width=16, heads=2),
        data=pairs[0].pick(range(64)),
        settings=SplitTrainSettings(epochs=1, ensemble_epochs=1, batch_size=32),
        seed=0,
        device=torch.device("cpu"),
    )


def seen_of(system, bench, pairs):
    rng = torch.Generator().manual_seed(1)
    return observe(system, pairs[1].inputs[:40], bench.network, bench.data, rng)


def right(read, pairs):
    """Of the words before the end."""
    source = pairs[1].source[: len(read)]
    return (read == source)[source > 2].float().mean().item()


@pytest.mark.parametrize("align", [0.0, 10.0])
def test_an_attack_reads_a_sentence_a_query_and_leaves_the_server_as_it_was(align, bench, pairs):
    seen = seen_of(Ensembler(bodies=2, selected=1)(bench), bench, pairs)
    kept = [{k: v.clone() for k, v in body.state_dict().items()} for body in seen.bodies]
    before = torch.random.get_rng_state()
    told = []
    first, again, other = (
        read_sentences(
            replace(TINY, align=align), seen, torch.Generator().manual_seed(seed), told.append
        )
        for seed in (0, 0, 1)
    )
    assert torch.equal(before, torch.random.get_rng_state())
    assert told[-1].done == told[-1].total
    assert first.words.shape == (40, PLACES)
    assert torch.equal(first.words, again.words)
    assert not torch.equal(first.words, other.words)
    for body, was in zip(seen.bodies, kept, strict=True):
        assert all(torch.equal(v, was[k]) for k, v in body.state_dict().items())
    with pytest.raises(SettingsError, match="2 bodies"):
        read_sentences(replace(TINY, bodies=(2,)), seen, torch.Generator(), told.append)


def test_the_decoder_reads_what_it_was_made_for(bench, pairs):
    """On features of the shadow itself nearly every word comes back, so that a poor reading of the
    client's is not the decoder's fault."""
    seen = replace(seen_of(Undefended()(bench), bench, pairs), public=pairs[0])
    attack = replace(TINY, decoder_epochs=40, lr=1e-2)
    got = read_sentences(attack, seen, torch.Generator().manual_seed(0), lambda progress: None)
    with torch.no_grad():
        own = got.decoder.read(got.shadow.head(pairs[1].inputs[:40]))
    assert right(own, pairs) > 0.9
    assert right(got.words, pairs) < right(own, pairs)


def test_counting_reads_a_cipher_and_fails_where_noise_is_drawn_anew(bench, pairs):
    """Better than the commonest word of each place, whatever the embedding; not behind Shredder."""
    public, private = pairs[0].source, pairs[1]
    best = max(
        right(words, pairs)
        for words in guesses(public, len(private), torch.Generator().manual_seed(0)).values()
    )
    found = {}
    for name, defence in {"none": Undefended(), "fresh": Shredder(sigma=0.3)}.items():
        system = defence(bench)
        rng = torch.Generator().manual_seed(1)
        seen = observe(system, private.inputs, bench.network, bench.data, rng)
        found[name] = right(counted(seen.features, public), pairs)
    assert found["none"] > best + 0.05
    assert found["fresh"] < found["none"] - 0.05


def test_counting_matches_ranks():
    """Worked out by hand: two places, the commonest vector is the commonest word."""
    features = torch.tensor([[1.0, 5.0], [1.0, 6.0], [2.0, 6.0]])[:, None, :]
    public = torch.tensor([[9, 3], [9, 4], [8, 4], [9, 4]])
    assert counted(features, public).tolist() == [[9, 3], [9, 4], [8, 4]]


def test_guesses_are_what_one_works_out_by_hand():
    public = torch.tensor([[5, 7, 0], [5, 6, 0], [4, 7, 7], [5, 7, 0]])
    found = guesses(public, 2, torch.Generator().manual_seed(0))
    assert found["commonest word"].tolist() == [[7, 7, 7]] * 2
    assert found["commonest word of each place"].tolist() == [[5, 7, 0]] * 2
    assert all(row in public.tolist() for row in found["another sentence"].tolist())
