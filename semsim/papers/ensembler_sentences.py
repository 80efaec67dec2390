"""Table 4 of the Ensembler paper (Appendix A.1): sentences read from what a client sends.

The paper shows two sentences and no number, of an undefended transformer on another text.

Systems are trained, then their sentences read, each kept by its key: what is finished is taken from
the data folder, so that an interrupted run goes on. The attack is that on images, word by word: a
shadow embedding is trained through the server's frozen bodies, then a decoder of what it makes,
which is applied to what the client has sent. Nothing is asked of the client. `counted` needs no
network at all.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.base.cli.terminal import rows_of
from semsim.base.jobs.orders import changed
from semsim.base.progress import Report, silent
from semsim.base.registry import built, plain
from semsim.base.stats.intervals import half_words, of_means
from semsim.base.storage.pieces import Pieces
from semsim.device import pick_device
from semsim.grid.executor import Piece, spread
from semsim.papers.engine import (
    DECLARED,
    PRINTED,
    Columns,
    Row,
    caption,
    column,
    markdown_line,
    markdown_of,
)
from semsim.papers.sentences import (
    CONTENT,
    END,
    PLACES,
    Sentences,
    Translator,
    Words,
    bleu,
    in_words,
    joined,
    numbered,
    sentences,
    translate,
    vocabularies,
    words_right,
)
from semsim.systems.split import SPLIT_DEFENCES
from semsim.systems.split.attacks import ShadowNetwork, learned
from semsim.systems.split.defences import stage_of
from semsim.systems.split.networks import FeatureObservation, SplitSystem, observe, task_of
from semsim.systems.split.plan import (
    VALID_POINTS,
    ShadowAttack,
    SplitPlace,
    SplitTrainSettings,
    attack_name,
    attacks_on,
)
from semsim.systems.split.run import SplitStore, check_shared, key_of
from semsim.systems.split.summary import of_systems, spread_text
from semsim.systems.split.training import Bench, read_tensors, write_tensors

_DECIMALS = 4  # by which what crosses is the same vector again


class SentenceDecoder(nn.Module):
    """Features of a sentence back to its words, each place with two neighbours on either side.

    Attributes:
        split: Places of the sentence, before those of its translation.
    """

    def __init__(self, inputs: int, words: int, split: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(inputs, inputs, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(inputs, inputs, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(inputs, words, 1),
        )
        self.split = split

    def forward(self, features: Tensor) -> Tensor:
        """(N, C, S + T) to logits, (N, words, S)."""
        found: Tensor = self.layers(features[:, :, : self.split])
        return found

    @torch.no_grad()
    def read(self, features: Tensor) -> Tensor:
        """The likeliest words, (N, S), of features, (N, C, S + T)."""
        parts = [self(part).argmax(dim=1) for part in features.split(256)]
        return torch.cat(parts)


class Reading(NamedTuple):
    """Result of a reading attack.

    Attributes:
        words: (N, S), one sentence a query.
        shadow, decoder: The attacker's own, in eval mode, to see whether each does its work.
    """

    words: Tensor
    shadow: ShadowNetwork
    decoder: SentenceDecoder


def read_sentences(
    attack: ShadowAttack, seen: FeatureObservation, rng: torch.Generator, report: Report
) -> Reading:
    """One sentence a query, from a decoder of the features of a shadow embedding.

    seen.public: `semsim.papers.sentences.Sentences`. Raises `SettingsError` for a body that
    the server does not have, and where a training diverges.
    """
    task = task_of(seen.public)
    split = task.size[0]

    def fresh() -> SentenceDecoder:
        return SentenceDecoder(seen.features.shape[1], task.channels, split)

    def misread(found: Tensor, inputs: Tensor) -> Tensor:
        return F.cross_entropy(found, inputs[:, :split])

    shadow, decoder, _ = learned(attack, seen, fresh, misread, rng, report)
    return Reading(decoder.read(seen.features), shadow, decoder)


def counted(features: Tensor, public: Tensor) -> Tensor:
    """Words, (N, S), by how often each vector is sent at a place: a cipher read by counting.

    The commonest vector of a place is taken for the commonest word there of the public sentences,
    the next for the next. Where noise is drawn anew for every sentence no vector comes twice.

    Args:
        features: (N, C, S + T).
        public: Sentences, (M, S).
    """
    columns = []
    for place in range(public.shape[1]):
        sent = features[:, :, place].mul(10**_DECIMALS).round()
        _, which, counts = torch.unique(sent, dim=0, return_inverse=True, return_counts=True)
        ranks = counts.argsort(descending=True, stable=True).argsort()
        words = public[:, place].bincount().argsort(descending=True, stable=True)
        columns.append(words[ranks[which].clamp(max=len(words) - 1)])
    return torch.stack(columns, dim=1)


def guesses(public: Tensor, count: int, rng: torch.Generator) -> dict[str, Tensor]:
    """Return the guesses of an attacker who sees no feature, (count, S) each.

    Args:
        public: Sentences, (M, S). "commonest word": it, everywhere. "commonest word of each place":
            as the mean is of pictures. "another sentence": one of the public ones, drawn.
    """
    words = public[public > END]  # neither ends nor padding
    places = public.mode(dim=0).values
    drawn = torch.randint(len(public), (count,), generator=rng)
    return {
        "commonest word": torch.full((count, public.shape[1]), int(words.mode().values)),
        "commonest word of each place": places.repeat(count, 1),
        "another sentence": public[drawn],
    }


COUNTING = "counting"  # the attack that has no network
_GUESS = 5_000_011  # a seed apart


@dataclass(frozen=True, kw_only=True)
class SentencePlan:
    """The translator under every defence and seed, read in every way with every seed.

    Attributes:
        public: Sentences that the system and the attacker learn from.
        private: Others, that the client translates.
        seed: Of the sentences.
        defences, attacks: As of `SplitPlan`.
        shown: Sentences told.
    """

    name: str
    network: Translator = field(default_factory=Translator)
    public: int = 2_000
    private: int = 300
    seed: int = 0
    defences: tuple[str, ...] = ("none", "single", "ensembler:bodies=4,selected=2")
    attacks: tuple[str, ...] = ("adaptive", "adaptive-aligned")
    train: SplitTrainSettings = field(default_factory=SplitTrainSettings)
    shadow: ShadowAttack = field(default_factory=ShadowAttack)
    defence_seeds: tuple[int, ...] = (0,)
    attack_seeds: tuple[int, ...] = (0,)
    shown: int = 3


def split_sentences(plan: SentencePlan) -> tuple[Sentences, Sentences]:
    """Public and private sentences, of which none is in both."""
    pairs = sentences(plan.public + plan.private, plan.seed)
    return numbered(pairs[: plan.public]), numbered(pairs[plan.public :])


def run_sentences(
    plan: SentencePlan,
    place: SplitPlace,
    report: Report = silent,
    workers: int = 1,
    scheduler: str = "",
) -> dict[str, Any]:
    """Carry out `plan`; finished pieces are taken from the data folder.

    Args:
        workers, scheduler: Who does systems and attacks, as of `run_split`.

    Returns:
        Ready for JSON: plan, rows (one an attack on a system), guesses (of who sees no feature),
        examples (of the first seeds, one a sentence). Raises as `run_split` does.
    """
    place = place.resolved()
    run = SentenceRun(plan, place)

    def do(stage: int, kept: Pieces[Any], work: str, asked: Mapping[str, tuple[Any, ...]]) -> None:
        missing, told = kept.missing(asked), stage_of(report, stage, 2)
        notes = {key: "{} {}, seed {}".format(work, *own) for key, own in asked.items()}
        pieces = [
            Piece(key=key, work=_do, asked=(plan, place, work, asked[key]), note=notes[key])
            for key in missing
        ]
        spread(pieces, lambda *_: None, told, workers, scheduler, ready=len(asked) - len(missing))
        check_shared(kept, asked)

    systems = [(defence, seed) for seed in plan.defence_seeds for defence in plan.defences]
    needed = [*(("none", seed) for seed in plan.defence_seeds), *systems]
    do(0, run.store.systems, "train", {run.key(*one): one for one in needed})
    read = [(*one, tool, seed) for one in systems for _, tool, seed in run.tools(*one)]
    do(1, run.leaks, "read", {run.leak_key(*one): one for one in read})
    return {
        "plan": plain(plan),
        "rows": [row for one in systems for row in run.rows(*one)],
        "guesses": run.guesses(),
        "examples": [one for defence in plan.defences for one in run.examples(defence)],
    }


class SentenceRun:
    """The plan with its sentences at hand."""

    def __init__(self, plan: SentencePlan, place: SplitPlace) -> None:
        self.plan, self.place = plan, place
        self.public, self.private = split_sentences(plan)
        self.device = pick_device(place.device)
        self.store = SplitStore(place.data)
        self.leaks: Pieces[dict[str, Any]] = Pieces(
            self.store.folder, ".pt", read=read_tensors, write=write_tensors
        )
        self.digests = [key_of({"pairs": part.pairs}) for part in (self.public, self.private)]
        self.english = [pair.english for pair in self.private.pairs]
        self.german = [pair.german for pair in self.private.pairs]
        self.words, self.answers = vocabularies()

    def key(self, defence: str, seed: int) -> str:
        """Of a trained system."""
        parts = plain([self.plan.network, built(SPLIT_DEFENCES, defence), self.plan.train])
        return key_of({"sentences": self.digests, "parts": parts, "seed": seed})

    def leak_key(self, defence: str, seed: int, tool: ShadowAttack, attack_seed: int) -> str:
        """Of what an attack on a system has read."""
        facts = {"system": self.key(defence, seed), "tool": plain(tool)}
        return key_of({**facts, "seed": attack_seed})

    def tools(self, defence: str, seed: int) -> list[tuple[str, ShadowAttack, int]]:
        """Every attack on a trained system: its name in the plan, its settings, its seed."""
        system, _ = self.system(defence, seed)
        tools = [
            (a, one) for a in self.plan.attacks for one in attacks_on(system, a, self.plan.shadow)
        ]
        return [(*one, attack_seed) for one in tools for attack_seed in self.plan.attack_seeds]

    def train(self, defence: str, seed: int, report: Report) -> None:
        """Train a system, translate the private sentences by it, and keep both."""
        began, key = time.monotonic(), self.key(defence, seed)
        bench = Bench(
            network=self.plan.network,
            data=self.public,
            settings=self.plan.train,
            seed=seed,
            device=self.device,
            folder=self.store.stages(key),
        )
        system: SplitSystem = built(SPLIT_DEFENCES, defence)(bench, report)
        with torch.random.fork_rng():
            torch.manual_seed(seed)  # of noise that is drawn anew
            translated = translate(system, self.private.source.to(self.device), PLACES).cpu()
        facts = {"translated": translated, "seconds": time.monotonic() - began}
        self.store.write_system(key, system, facts)

    def system(self, defence: str, seed: int) -> tuple[SplitSystem, Tensor]:
        """A trained system, and what it made of the private sentences, (N, places)."""
        asked = self.key(defence, seed), self.plan.network, task_of(self.public)
        system, facts = self.store.read_system(*asked)
        return system.to(self.device), facts["translated"]

    def sent(self, defence: str, seed: int, rng: torch.Generator) -> FeatureObservation:
        """Return the server's observation of the client's translations, once each is complete."""
        system, translated = self.system(defence, seed)
        rows = joined(self.private.source, translated)
        return observe(system, rows, self.plan.network, self.public, rng)

    def read(
        self, defence: str, seed: int, tool: ShadowAttack, attack_seed: int, report: Report
    ) -> None:
        """Attack a system and keep what was read, and how well the attacker's own parts do."""
        began, rng = time.monotonic(), torch.Generator().manual_seed(attack_seed)
        got = read_sentences(tool, self.sent(defence, seed, rng), rng, report)
        with torch.no_grad():
            own = got.shadow.head(self.private.inputs.to(self.device))
        source = self.private.source.to(self.device)
        content = {
            "read": got.words.cpu(),
            "own": got.decoder.read(own).cpu(),
            "translated": translate(got.shadow, source, PLACES).cpu(),
            "seconds": time.monotonic() - began,
        }
        self.leaks.write(self.leak_key(defence, seed, tool, attack_seed), content)

    def texts(self, defence: str, seed: int) -> Iterator[tuple[str, int, dict[str, list[Words]]]]:
        """Yield the attacks on a system, their seeds, and the columns of Table 4 in words."""
        _, translated = self.system(defence, seed)
        for arm, tool, attack_seed in self.tools(defence, seed):
            kept = self.leaks.read(self.leak_key(defence, seed, tool, attack_seed))
            columns = {
                "truth": self.english,
                "standard": in_words(translated, self.answers),
                "shadow": in_words(kept["translated"], self.answers),
                "decoder_on_shadow": in_words(kept["own"], self.words),
                "decoder_on_client": in_words(kept["read"], self.words),
            }
            yield attack_name(arm, tool), attack_seed, columns

    def rows(self, defence: str, seed: int) -> list[dict[str, Any]]:
        """One row an attack on a trained system, that by counting too."""
        standard, plain_one = (
            in_words(self.system(one, seed)[1], self.answers) for one in (defence, "none")
        )
        right, undefended = (words_right(self.german, one) for one in (standard, plain_one))
        facts: dict[str, Any] = {"defence": defence, "defence_seed": seed, "accuracy": right}
        facts |= {"translation_bleu": bleu(self.german, standard), "change": right - undefended}
        facts["valid"] = facts["change"] >= -VALID_POINTS - 1e-9
        found = [
            {
                **{**facts, "attack": attack, "attack_seed": attack_seed},
                "shadow_accuracy": words_right(self.german, one["shadow"]),
                "decoder_accuracy": words_right(self.english, one["decoder_on_shadow"]),
                **self._scores(one["decoder_on_client"]),
            }
            for attack, attack_seed, one in self.texts(defence, seed)
        ]
        first = self.plan.attack_seeds[0]
        seen = self.sent(defence, seed, torch.Generator().manual_seed(first))
        counts = in_words(counted(seen.features.cpu(), self.public.source), self.words)
        name = {"attack": COUNTING, "attack_seed": first}
        return [*found, {**facts, **name, **self._scores(counts)}]

    def guesses(self) -> dict[str, dict[str, float]]:
        """Scores of what is said without any feature, by what it is."""
        rng = torch.Generator().manual_seed(self.plan.seed + _GUESS)
        found = guesses(self.public.source, len(self.private), rng)
        return {name: self._scores(in_words(words, self.words)) for name, words in found.items()}

    def examples(self, defence: str) -> list[dict[str, str]]:
        """The columns of Table 4 for the first sentences, one a sentence and attack."""
        first = self.plan.attack_seeds[0]
        return [
            {
                **{"defence": defence, "attack": attack},
                **{name: " ".join(column[place]) for name, column in columns.items()},
            }
            for attack, seed, columns in self.texts(defence, self.plan.defence_seeds[0])
            if seed == first
            for place in range(min(self.plan.shown, len(self.english)))
        ]

    def _scores(self, found: Sequence[Words]) -> dict[str, float]:
        """words: share of the words in place; content: of those a sentence is about; bleu."""
        return {
            "words": words_right(self.english, found),
            "content": words_right(self.english, found, CONTENT),
            "bleu": bleu(self.english, found),
        }


_run = cache(SentenceRun)  # the sentences, made once a process


def _do(
    plan: SentencePlan, place: SplitPlace, work: str, asked: tuple[Any, ...], *, report: Report
) -> None:
    """Train or read, as the method called `work` does."""
    getattr(_run(plan, place), work)(*asked, report)


def sentence_summary(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Mean and standard deviation over seeds, one row a (defence, attack), see `SentenceRun.rows`.

    n: runs; sd has n - 1 and is NaN for one.
    """
    table = pd.DataFrame(rows)
    own = table.groupby(["defence", "attack"], sort=False)
    scores = own[list(table.select_dtypes("number"))].agg(["mean", "std"])
    scores.columns = scores.columns.map("_".join).str.replace(r"_std$", "_sd", regex=True)
    counts = {"n": own.size(), "valid": own["valid"].all()}
    return pd.concat([pd.DataFrame(counts), scores], axis=1).reset_index()


NUMBER = 4
_SHOWN: Columns = {  # columns of Table 4 behind the ground truth, from left to right
    "standard translation": column("standard"),
    "shadow translation": column("shadow"),
    "decoder on shadow": column("decoder_on_shadow"),
    "decoder on client": column("decoder_on_client"),
}
_PLACED = {"words": "decoder on client: words", "content": "content", "bleu": "BLEU"}
_LEARNED = {"shadow_accuracy": "shadow translates", "decoder_accuracy": "decoder on shadow"}


_READ: Columns = {
    "defence": column("defence"),
    "translates": column("accuracy_mean", ".3f"),
    "change": lambda row: f"{100 * row['change_mean']:+.2f}{'' if row['valid'] else ' (invalid)'}",
    "attack": column("attack"),
    "n": column("n"),
    **{
        head: partial(spread_text, name=name, digits=3)
        for name, head in (_LEARNED | _PLACED).items()
    },
}
# What the paper shows of two sentences, by the columns of Table 4.
PAPER_ROWS: list[dict[str, str]] = PRINTED["sentences"]
PLANS: Mapping[str, SentencePlan] = MappingProxyType(
    {
        preset: changed(SentencePlan(name=preset), changes)
        for preset, changes in DECLARED["sentences"].items()
    }
)


def read_lines(
    rows: Sequence[Row], guesses: Mapping[str, Mapping[str, float]], *more: Sequence[str]
) -> list[str]:
    """Return a row an attack and a guess, as Markdown.

    Args:
        rows: Of `sentence_summary`.
        more: Further lines, cell by cell.
    """
    cells = [
        [f"*baseline: {name}*", *["–"] * 6, *(f"{scores[one]:.3f}" for one in _PLACED)]
        for name, scores in guesses.items()
    ]
    return [*markdown_of(_READ, rows), *map(markdown_line, [*cells, *more])]


def sentence_parts(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return means over seeds of what attacks read, scores of guesses, and of the paper's rows."""
    known = [{"guess": name, **scores} for name, scores in outcome["guesses"].items()]
    paper = [{"paper": row, **paper_scores(row)} for row in PAPER_ROWS]
    return {"attacks": rows_of(sentence_summary(outcome["rows"])), "guesses": known, "paper": paper}


def sentence_text(outcome: Mapping[str, Any]) -> str:
    """Numbers, sentences beside the paper's, and what they say, as Markdown."""
    plan, rows = outcome["plan"], outcome["rows"]
    shown = {"paper": PAPER_ROWS}
    for one in outcome["examples"]:
        shown.setdefault(f"{one['defence']}, {one['attack']}", []).append(one)
    first, *others = (
        [*markdown_of({f"{whose}: ground truth": column("truth"), **_SHOWN}, own), ""]
        for whose, own in shown.items()
    )
    lines = [
        *read_lines(rows_of(sentence_summary(rows)), outcome["guesses"]),
        "",
        caption("sentences", "read", **plan),
        "",
        *first,
        f"By our measures, decoder on shadow and on client: "
        f"{'; '.join(map(_paper_words, PAPER_ROWS))}.",
        "",
        *(line for own in others for line in own),
        *sentence_verdicts(rows, outcome["guesses"]),
    ]
    return "\n".join(lines)


def sentence_verdicts(
    rows: Sequence[Mapping[str, Any]], guesses: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Compare in words what was read with guessing, and each defence with none.

    By content words; more or less is said where the interval over systems leaves out 0.
    """
    table = pd.DataFrame(rows)
    best = max(guesses, key=lambda name: guesses[name]["content"])
    guess, lines = guesses[best]["content"], []
    for (defence, attack), part in table.groupby(["defence", "attack"], sort=False):
        own = of_systems(part, "content")
        against = _against("guessing", own.mean() - guess, own, note=f"{best}, {guess:.3f}; ")
        line = f"{defence}, {attack}: {own.mean():.3f} of content words, {against}"
        plain = table[(table["defence"] == "none") & (table["attack"] == attack)]
        if defence != "none" and len(plain):
            other = of_systems(plain, "content")
            gap = own.mean() - other.mean()
            line += f"; {_against('the undefended system', gap, own, other)}"
        lines.append(f"{line}.")
    return lines


def _against(what: str, gap: float, *sides: np.ndarray, note: str = "") -> str:
    half, why = of_means(*sides, noun="system")
    word = "more than" if gap > 0 else "less than"
    word = word if abs(gap) > half else "not shown to differ from"
    return f"{word} {what} ({note}{gap:+.3f}{half_words(half, why)})"


def paper_scores(row: Mapping[str, str]) -> dict[str, float]:
    """Return the shares of right words and BLEU of the decoder in one of the paper's sentences."""
    truth, *read = (
        tuple(text.lower().replace(".", " ").split())
        for text in (row["truth"], row["decoder_on_shadow"], row["decoder_on_client"])
    )
    found = {}
    for whose, one in zip(("shadow", "client"), read, strict=True):
        found[f"words_{whose}"] = words_right([truth], [one])
        found[f"bleu_{whose}"] = bleu([truth], [one])
    return found


def _paper_words(row: Mapping[str, str]) -> str:
    scores = paper_scores(row)
    words, runs = (
        " and ".join(f"{scores[f'{name}_{whose}']:.2f}" for whose in ("shadow", "client"))
        for name in ("words", "bleu")
    )
    return f"words {words}, BLEU {runs}"
