"""Table 4 of the Ensembler paper (Appendix A.1): sentences read from what a client sends.

The paper shows two sentences and no number, of an undefended transformer on another text.

Systems are trained, then their sentences read, each kept by its key: what is finished is taken from
the data folder, so that an interrupted run goes on. The attack is that on images, word by word: a
shadow embedding is trained through the server's frozen bodies, then a decoder of what it makes,
which is applied to what the client has sent. Nothing is asked of the client. `counted` needs no
network at all.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.base.jobs.orders import changed
from semsim.base.progress import Report, silent
from semsim.base.registry import plain
from semsim.base.stats.intervals import half_words, of_means
from semsim.base.storage.names import checked_name
from semsim.base.storage.pieces import Pieces
from semsim.base.storage.places import toml_of
from semsim.device import pick_device
from semsim.grid.executor import Piece, spread
from semsim.papers.engine import DECLARED
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
from semsim.systems.split.attacks import ShadowNetwork, learned
from semsim.systems.split.defences import stage_of
from semsim.systems.split.networks import FeatureObservation, SplitSystem, observe, task_of
from semsim.systems.split.plan import (
    ARMS,
    VALID_POINTS,
    ShadowAttack,
    SplitPlace,
    SplitTrainSettings,
    attack_name,
    attacks_on,
    make_defence,
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


@dataclass(frozen=True, kw_only=True)
class Reading:
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
    return Reading(words=decoder.read(seen.features), shadow=shadow, decoder=decoder)


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
_System = tuple[str, int]  # defence, seed


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


def check_sentences(plan: SentencePlan) -> SentencePlan:
    """`plan` itself; `SettingsError` or `UnknownNameError` where it cannot be carried out."""
    checked_name(plan.name, "an experiment")
    if min(plan.public, plan.private) < 1:
        raise SettingsError("Give at least one public and one private sentence.")
    for text in plan.defences:
        make_defence(text)
    for arm in plan.attacks:
        ARMS[arm]
    return plan


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
        workers, scheduler: Who does systems and attacks, as of `run_split`. Returns, ready for
            JSON: plan, rows (one an attack on a system, columns of `scores_of` and what was
            attacked), guesses (of who sees no feature), examples (of the first seeds, a list a
            sentence). Raises as `run_split` does.
    """
    place = place.resolved()
    run = SentenceRun(check_sentences(plan), place)
    systems = [(defence, seed) for seed in plan.defence_seeds for defence in plan.defences]
    needed = dict.fromkeys([("none", seed) for seed in plan.defence_seeds] + systems)
    train = [
        Piece(
            key=run.key(*one),
            work=_train,
            asked=(plan, place, *one),
            note="train {}, seed {}".format(*one),
        )
        for one in needed
    ]
    _do(run.store.systems, train, stage_of(report, 0, 2), workers, scheduler)
    read = [
        Piece(
            key=run.leak_key(*one, tool, attack_seed),
            work=_read,
            asked=(plan, place, one, tool, attack_seed),
            note=f"read {one[0]}, seed {one[1]}, {attack_name(arm, tool)}, seed {attack_seed}",
        )
        for one in systems
        for arm, tool, attack_seed in run.tools(*one)
    ]
    _do(run.leaks, read, stage_of(report, 1, 2), workers, scheduler)
    rows = [row for one in systems for row in run.rows(*one)]
    return {
        "plan": plain(plan),
        "rows": rows,
        "guesses": run.guesses(),
        "examples": [one for defence in plan.defences for one in run.examples(defence)],
    }


def scores_of(originals: Sequence[Words], found: Sequence[Words]) -> dict[str, float]:
    """words: share of the words in place; content: of those that a sentence is about; bleu."""
    return {
        "words": words_right(originals, found),
        "content": words_right(originals, found, CONTENT),
        "bleu": bleu(originals, found),
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
        parts = plain([self.plan.network, make_defence(defence), self.plan.train])
        return key_of({"sentences": self.digests, "parts": parts, "seed": seed})

    def leak_key(self, defence: str, seed: int, tool: ShadowAttack, attack_seed: int) -> str:
        """Of what an attack on a system has read."""
        facts = {"system": self.key(defence, seed), "tool": plain(tool)}
        return key_of({**facts, "seed": attack_seed})

    def tools(self, defence: str, seed: int) -> list[tuple[str, ShadowAttack, int]]:
        """Every attack on a trained system: its name in the plan, its settings, its seed."""
        system, _ = self.system(defence, seed)
        return [
            (arm, tool, attack_seed)
            for arm in self.plan.attacks
            for tool in attacks_on(system, arm, self.plan.shadow)
            for attack_seed in self.plan.attack_seeds
        ]

    def bench(self, defence: str, seed: int) -> Bench:
        """Return the bench on which a system trains."""
        return Bench(
            network=self.plan.network,
            data=self.public,
            settings=self.plan.train,
            seed=seed,
            device=self.device,
            folder=self.store.stages(self.key(defence, seed)),
        )

    def train(self, defence: str, seed: int, report: Report) -> None:
        """Train a system, translate the private sentences by it, and keep both."""
        bench, began = self.bench(defence, seed), time.monotonic()
        system: SplitSystem = make_defence(defence)(bench, report)
        with torch.random.fork_rng():
            torch.manual_seed(seed)  # of noise that is drawn anew
            translated = translate(system, self.private.source.to(self.device), PLACES).cpu()
        facts = {"translated": translated, "seconds": time.monotonic() - began}
        self.store.write_system(self.key(defence, seed), system, facts)

    def system(self, defence: str, seed: int) -> tuple[SplitSystem, Tensor]:
        """A trained system, and what it made of the private sentences, (N, places)."""
        task = self.bench(defence, seed).task
        key = self.key(defence, seed)
        system, facts = self.store.read_system(key, self.plan.network, task)
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
        source = self.private.source.to(self.device)
        with torch.no_grad():
            own = got.shadow.head(self.private.inputs.to(self.device))
        content = {
            "read": got.words.cpu(),
            "own": got.decoder.read(own).cpu(),
            "translated": translate(got.shadow, source, PLACES).cpu(),
            "seconds": time.monotonic() - began,
        }
        self.leaks.write(self.leak_key(defence, seed, tool, attack_seed), content)

    def rows(self, defence: str, seed: int) -> list[dict[str, Any]]:
        """One row an attack on a trained system, that by counting too."""
        right, translated = self._right(defence, seed)
        change = right - self._right("none", seed)[0]
        facts: dict[str, Any] = {
            "defence": defence,
            "defence_seed": seed,
            "accuracy": right,
            "translation_bleu": bleu(self.german, in_words(translated, self.answers)),
            "change": change,
            "valid": change >= -VALID_POINTS - 1e-9,
        }
        found = []
        for arm, tool, attack_seed in self.tools(defence, seed):
            kept = self.leaks.read(self.leak_key(defence, seed, tool, attack_seed))
            name = {"attack": attack_name(arm, tool), "attack_seed": attack_seed}
            shadow = words_right(self.german, in_words(kept["translated"], self.answers))
            own = words_right(self.english, in_words(kept["own"], self.words))
            more = {"shadow_accuracy": shadow, "decoder_accuracy": own}
            found.append({**facts, **name, **more, **self._scores(kept["read"])})
        seen = self.sent(defence, seed, torch.Generator().manual_seed(self.plan.attack_seeds[0]))
        counts = counted(seen.features.cpu(), self.public.source)
        name = {"attack": COUNTING, "attack_seed": self.plan.attack_seeds[0]}
        return [*found, {**facts, **name, **self._scores(counts)}]

    def guesses(self) -> dict[str, dict[str, float]]:
        """Scores of what is said without any feature, by what it is."""
        rng = torch.Generator().manual_seed(self.plan.seed + _GUESS)
        found = guesses(self.public.source, len(self.private), rng)
        return {name: self._scores(words) for name, words in found.items()}

    def examples(self, defence: str) -> list[dict[str, str]]:
        """The columns of Table 4 for the first sentences, one a sentence and attack."""
        seed, first = self.plan.defence_seeds[0], self.plan.attack_seeds[0]
        _, translated = self.system(defence, seed)
        found = []
        for arm, tool, attack_seed in self.tools(defence, seed):
            if attack_seed != first:
                continue
            kept = self.leaks.read(self.leak_key(defence, seed, tool, attack_seed))
            columns = {
                "truth": self.english,
                "standard": in_words(translated, self.answers),
                "shadow": in_words(kept["translated"], self.answers),
                "decoder_on_shadow": in_words(kept["own"], self.words),
                "decoder_on_client": in_words(kept["read"], self.words),
            }
            for place in range(min(self.plan.shown, len(self.english))):
                told = {name: " ".join(column[place]) for name, column in columns.items()}
                found.append({"defence": defence, "attack": attack_name(arm, tool), **told})
        return found

    def _right(self, defence: str, seed: int) -> tuple[float, Tensor]:
        """Return the share of right words in its translations, and the translations."""
        _, translated = self.system(defence, seed)
        return words_right(self.german, in_words(translated, self.answers)), translated

    def _scores(self, words: Tensor) -> dict[str, float]:
        return scores_of(self.english, in_words(words, self.words))


_run = cache(SentenceRun)  # the sentences, made once a process


def _train(
    plan: SentencePlan, place: SplitPlace, defence: str, seed: int, *, report: Report
) -> None:
    _run(plan, place).train(defence, seed, report)


def _read(
    plan: SentencePlan,
    place: SplitPlace,
    system: _System,
    tool: ShadowAttack,
    seed: int,
    *,
    report: Report,
) -> None:
    _run(plan, place).read(*system, tool, seed, report)


def _do(
    kept: Pieces[Any], pieces: Sequence[Piece], report: Report, workers: int, scheduler: str
) -> None:
    """Do those pieces that are not kept; the first failure ends it, and what was done stays."""
    missing = [piece for piece in pieces if piece.key not in kept]
    ready = len(pieces) - len(missing)
    spread(missing, lambda *_: None, report, workers, scheduler, ready=ready)
    check_shared(kept, [piece.key for piece in pieces])


def sentence_summary(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Mean and standard deviation over seeds, one row a (defence, attack), see `SentenceRun.rows`.

    n: runs; sd has n - 1 and is NaN for one.
    """
    table, lines = pd.DataFrame(rows), []
    for (defence, attack), part in table.groupby(["defence", "attack"], sort=False):
        line: dict[str, Any] = {"defence": defence, "attack": attack, "n": len(part)}
        line["valid"] = bool(part["valid"].all())
        for name in part.select_dtypes("number").columns:
            line[f"{name}_mean"] = part[name].mean()
            line[f"{name}_sd"] = part[name].std(ddof=1)
        lines.append(line)
    return pd.DataFrame(lines)


NUMBER = 4
_COLUMNS = {  # of Table 4, from left to right
    "truth": "ground truth",
    "standard": "standard translation",
    "shadow": "shadow translation",
    "decoder_on_shadow": "decoder on shadow",
    "decoder_on_client": "decoder on client",
}


# What the paper shows of two sentences, by `_COLUMNS`.
PAPER_ROWS: list[dict[str, str]] = toml_of("semsim.papers", "printed.toml")["sentences"]
PLANS: Mapping[str, SentencePlan] = MappingProxyType(
    {
        preset: changed(SentencePlan(name=preset), changes)
        for preset, changes in DECLARED["sentences"].items()
    }
)


def sentence_rows(outcome: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Means over seeds of what each attack read, what guessing says, and the paper's sentences."""
    rows = sentence_summary(outcome["rows"]).to_dict("records")
    known = [{"guess": name, **scores} for name, scores in outcome["guesses"].items()]
    paper = [{"paper": row, **_paper_scores(row)} for row in PAPER_ROWS]
    return [{str(name): value for name, value in row.items()} for row in rows] + known + paper


def sentence_text(outcome: Mapping[str, Any]) -> str:
    """Numbers, sentences beside the paper's, and what they say, as Markdown."""
    plan, rows = outcome["plan"], outcome["rows"]
    lines = [
        "| defence | translates | change | attack | n | shadow translates | decoder on shadow "
        "| decoder on client: words | content | BLEU |",
        "| --- " * 10 + "|",
        *[_line(row) for row in sentence_summary(rows).to_dict("records")],
        *[_guess_line(name, scores) for name, scores in outcome["guesses"].items()],
        "",
        "Words in place, shares of those of the original, mean ± standard deviation over seeds; "
        "content counts nouns, verbs and adjectives only. "
        f"{plan['private']} sentences of a grammar, none among the {plan['public']} that "
        "system and attacker learn from. The paper has two sentences, of an undefended "
        "transformer on another text, and no number.",
        "",
        *_table(PAPER_ROWS, "paper"),
        "",
        "By our measures, decoder on shadow and on client: "
        + "; ".join(_paper_words(row) for row in PAPER_ROWS)
        + ".",
        "",
        *_shown(outcome["examples"]),
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


def _line(row: Mapping[Any, Any]) -> str:
    names = ("shadow_accuracy", "decoder_accuracy", "words", "content", "bleu")
    change = f"{100 * row['change_mean']:+.2f}" + ("" if row["valid"] else " (invalid)")
    cells = [row["defence"], f"{row['accuracy_mean']:.3f}", change, row["attack"]]
    spreads = [spread_text(dict(row), name, 3) for name in names]
    return f"| {' | '.join([*cells, str(row['n']), *spreads])} |"


def _guess_line(name: str, scores: Mapping[str, float]) -> str:
    cells = [f"{scores[one]:.3f}" for one in ("words", "content", "bleu")]
    return f"| *guess: {name}* | – | – | – | – | – | – | {' | '.join(cells)} |"


def _table(rows: Sequence[Mapping[str, str]], whose: str) -> list[str]:
    head = [f"{whose}: {title}" if not n else title for n, title in enumerate(_COLUMNS.values())]
    body = [f"| {' | '.join(row[name] for name in _COLUMNS)} |" for row in rows]
    return [f"| {' | '.join(head)} |", "| --- " * len(_COLUMNS) + "|", *body]


def _shown(examples: Sequence[Mapping[str, str]]) -> list[str]:
    """The sentences of each attack on each defence, a table each."""
    lines = []
    for pair in dict.fromkeys((one["defence"], one["attack"]) for one in examples):
        mine = [one for one in examples if (one["defence"], one["attack"]) == pair]
        lines += [*_table(mine, ", ".join(pair)), ""]
    return lines


def _paper_scores(row: Mapping[str, str]) -> dict[str, float]:
    truth, *read = (
        tuple(text.lower().replace(".", " ").split())
        for text in (row["truth"], row["decoder_on_shadow"], row["decoder_on_client"])
    )
    names = ("shadow", "client")
    right = {f"words_{n}": words_right([truth], [one]) for n, one in zip(names, read, strict=True)}
    return right | {f"bleu_{n}": bleu([truth], [one]) for n, one in zip(names, read, strict=True)}


def _paper_words(row: Mapping[str, str]) -> str:
    scores = _paper_scores(row)
    words, runs = (
        " and ".join(f"{scores[f'{name}_{whose}']:.2f}" for whose in ("shadow", "client"))
        for name in ("words", "bleu")
    )
    return f"words {words}, BLEU {runs}"
