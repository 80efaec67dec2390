"""Table 4 of the Ensembler paper (Appendix A.1): sentences read from what a client sends.

The paper shows two sentences and no number, of an undefended transformer on another text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.stats.intervals import half_words, of_means
from semsim.base.storage.places import toml_of
from semsim.papers.sentence_scores import bleu, words_right
from semsim.papers.translation import SentencePlan, sentence_summary
from semsim.papers.translator import Translator
from semsim.systems.split.summary import of_systems, spread_text
from semsim.systems.split.train_settings import ShadowAttack, SplitTrainSettings

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
_WITH_ORACLE = ("adaptive", "adaptive-aligned", "oracle-aligned")
_SMALL = SentencePlan(
    name="ensembler-small-table4",
    network=Translator(),
    defences=("none", "single", "ensembler:bodies=4,selected=2"),
    train=SplitTrainSettings(epochs=16, ensemble_epochs=20, lr=3e-3, ensemble_lr=3e-3),
    shadow=ShadowAttack(epochs=12, decoder_epochs=4, lr=3e-3),
    attack_seeds=(0, 1, 2),
)
PLANS: Mapping[str, SentencePlan] = MappingProxyType(
    {
        "smoke": replace(
            _SMALL,
            name="ensembler-smoke-table4",
            network=Translator(width=8, heads=2),
            public=40,
            private=8,
            defences=("none", "single", "ensembler:bodies=2,selected=1"),
            attacks=_WITH_ORACLE,
            train=SplitTrainSettings(epochs=1, ensemble_epochs=1),
            shadow=ShadowAttack(epochs=1, decoder_epochs=1),
            attack_seeds=(0,),
        ),
        "small": _SMALL,
        # The tutorial's transformer and as many sentences as its text has.
        "paper": replace(
            _SMALL,
            name="ensembler-paper-table4",
            network=Translator(width=512, layers=3, heads=8),
            public=29_000,
            private=1_000,
            defences=("none", "single", "ensembler:bodies=10,selected=4"),
            attacks=_WITH_ORACLE,
            train=SplitTrainSettings(
                epochs=18, ensemble_epochs=36, batch_size=128, lr=2e-4, ensemble_lr=2e-4
            ),
            shadow=ShadowAttack(epochs=36, decoder_epochs=18, batch_size=128, lr=2e-4),
        ),
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
