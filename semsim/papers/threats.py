"""`semsim-studio reproduce threats`: who can see what of a client's batch, as one map.

A row is a cell: a network, untrained or trained, a strategy, a batch and an attack that applies.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import check_attack, read_attack, read_shared, threat_of
from semsim.base.cli.terminal import rows_of
from semsim.base.errors import SettingsError
from semsim.base.jobs.orders import changed
from semsim.base.registry import read_plugin
from semsim.base.sets.reader import ReconstructionSet
from semsim.base.stats.intervals import crossed_ends
from semsim.base.words import capital, counted, jury_words, listed, percent
from semsim.campaign.plan import Campaign, Plan, PlannedSet
from semsim.campaign.store import PieceStore
from semsim.defences import strategy_label
from semsim.papers.engine import DECLARED, of_preset, titled
from semsim.papers.judged import (
    FAILED,
    OK,
    UNFIT,
    Found,
    Judged,
    JudgedScale,
    JudgedTable,
    Sets,
    command_of,
    controls_table,
    jury_note,
    plans_of,
    reasons_table,
    refused,
)
from semsim.papers.simulated_votes import CONTROL, SAYS_NOTHING
from semsim.reporting import writing
from semsim.reporting.export import write_picture
from semsim.reporting.leak_map import threat_map
from semsim.reporting.notation import NONE
from semsim.reporting.tables import Cells, Table, table_of
from semsim.targets import NETWORKS
from semsim.targets.noticed import HELD, signs_of

UNTRAINED, TRAINED = "untrained", "trained"
SHARES = ("exact", "clearer", "people")  # of the attacked pictures; one that failed shows nothing
ORIGINALS, SEEDS = 24, 3  # fewer are too few for a conclusion
_DPI = 150  # of a picture that a page shows whole


def scale_of(name: str) -> JudgedScale:
    """The scale called smoke or small; `SettingsError` for another name."""
    told = of_preset(DECLARED["threats"], name)
    usual = changed(Campaign(name=name), told["campaign"])
    parts = tuple(
        _part(usual, text, batch, [one for one in told["attacks"] if _changes(one) == trap])
        for batch in told["batches"]
        for trap, texts in ((False, told["networks"]), (True, [told["changed"]]))
        for text in texts
    )
    return JudgedScale(name=name, parts=parts, jury_epochs=told["jury_epochs"])


def _changes(attack: str) -> bool:
    return ATTACKS.needs(read_attack(attack).name).threat.changes_model


def _part(
    usual: Campaign, network: str, batch: int, attacks: Sequence[str]
) -> tuple[str, Campaign]:
    """The title and campaign of a network and batch, with the attacks that take what is shared."""
    share = "gradient" if batch == 1 else f"batch-gradient:batch={batch}"
    name = read_plugin(NETWORKS, network).name
    fit = tuple(one for one in attacks if _takes(one, share))
    campaign = replace(
        usual,
        name=f"threats-{usual.name}-{name}-{batch}",
        architectures=(network,),
        shares=(share,),
        attacks=fit,
    )
    return f"{name}, batch {batch}", campaign


def _takes(attack: str, share: str) -> bool:
    try:
        check_attack(read_attack(attack), read_shared(share))
    except SettingsError:
        return False
    return True


def plan_words(scale: JudgedScale, plans: Mapping[str, Plan]) -> str:
    """Return what a scale attacks, and what its networks refuse, a line a reason."""
    usual = scale.parts[0][1]
    size = f"{counted(usual.images, 'original')}, {counted(len(usual.seeds), 'seed')}"
    lines = [
        f"{title}: {line}"
        for title, campaign in scale.parts
        if plans
        for line in refused(campaign).lines()
    ]
    return "\n".join([f"Scale {scale.name}, on {scale.dataset}: {size}.", *lines])


def _key(planned: PlannedSet) -> tuple[str, str, str]:
    """Return strategy, state of training and attack of a set."""
    plan = planned.target.plan
    state = TRAINED if plan.train.epochs else UNTRAINED
    return plan.label.split("/")[1], state, planned.attack.name


def rows(scale: JudgedScale, sets: Sets, judged: Judged) -> Iterator[dict[str, Any]]:
    """Yield a row a cell: its key, status and counts, what came back, and signs to notice."""
    noticed: dict[str, list[str]] = {}
    for _, campaign in scale.parts:
        tried = refused(campaign)
        network = read_plugin(NETWORKS, campaign.architectures[0]).name
        images = tried.plan.images[scale.dataset]
        made = list(zip(tried.plan.sets, sets[campaign.name], strict=True))
        for text, strategy, state in product(
            campaign.attacks, campaign.strategies, (UNTRAINED, TRAINED)
        ):
            attack, shared = read_attack(text), read_shared(campaign.shares[0])
            about: dict[str, Any] = {
                **{"network": network, "state": state, "strategy": strategy_label(strategy)},
                **{"batch": shared.settings.get("batch", 1), "attack": attack.name},
                **{"attacker": threat_of(attack, shared).words, "simulated": True},
                **{"originals": len(images), "seeds": len(campaign.seeds)},
            }
            if why := tried.why(text, strategy):
                yield {**about, "status": UNFIT, "why": why}
                continue
            key = (about["strategy"], state, attack.name)
            own = [(planned, found) for planned, found in made if _key(planned) == key]
            for planned, found in own:
                target = planned.target.key
                if target not in noticed:
                    weights = PieceStore(found.folder.parents[2]).weights.path(target)
                    noticed[target] = [one.what for one in signs_of(weights, images) if one.warns]
            warned = dict.fromkeys(sign for one, _ in own for sign in noticed[one.target.key])
            yield {**about, **_came_back(own, judged), "noticed": "; ".join(warned)}


def _came_back(
    own: Sequence[tuple[PlannedSet, ReconstructionSet]], judged: Judged
) -> dict[str, Any]:
    """Return the status of a cell, its targets, `SHARES`, and votes on pictures of no attack."""
    sets = [found for _, found in own]
    tries = pd.concat([_tries(*one, judged) for one in own], ignore_index=True)
    facts = judged.facts(sets)
    return {
        **facts,
        "status": OK if facts["n_ok"] else FAILED,
        **_target(sets),
        **{name: value for one in SHARES for name, value in _share(tries, one).items()},
        **judged.guesses(set(tries["image_id"])),
    }


def _tries(planned: PlannedSet, found: ReconstructionSet, judged: Judged) -> pd.DataFrame:
    """Return a row an attacked picture of a set: image_id, client, seed and `SHARES`, 0 to 1."""
    from semsim.sets.no_attack_baseline import judged_set

    back = list(found.pairs["image_id"])
    failed = [cell.image_id for cell in planned.cells if cell.image_id not in set(back)]
    clients = {cell.image_id: place for place, one in enumerate(planned.clients()) for cell in one}
    own = judged.of([found.model])
    votes = own.votes.groupby("image_id")["recognised"].mean()
    psnr = own.scores[own.scores["metric"] == "psnr"].set_index("image_id")["value"]
    tries = pd.DataFrame({"image_id": [*back, *failed]})
    tries["client"], tries["seed"] = tries["image_id"].map(clients), planned.target.seed
    tries["exact"] = np.isinf(tries["image_id"].map(psnr)).astype(float)  # as in `pixel.exact`
    tries["clearer"] = [float(one.clearer) for one in judged_set(found)]
    tries["people"] = tries["image_id"].map(votes).fillna(0.0).astype(float)
    return tries


def _share(tries: pd.DataFrame, name: str) -> dict[str, float]:
    """Return the share called `name`, its ends, and the count of pictures."""
    hits = tries[name].to_numpy()
    low, high = crossed_ends(hits, [tries[unit].to_numpy() for unit in ("client", "seed")])
    ends = {name: float(hits.mean()), f"{name}_low": low, f"{name}_high": high}
    return {**ends, f"n_{name}": float(hits.sum())}


def _target(sets: Sequence[ReconstructionSet]) -> dict[str, Any]:
    """Return the mean accuracy of targets, whether one guesses, and the largest ε of a training."""
    known = ["accuracy", "at_chance", "epsilon"]
    targets = pd.DataFrame([one.run["target"] for one in sets]).reindex(columns=known)
    trained = sets[0].run["target"]["train"]["epochs"] > 0
    return {
        "accuracy": targets["accuracy"].astype(float).mean(),
        "at_chance": bool(targets["at_chance"].any()),
        "epsilon": targets["epsilon"].astype(float).max() if trained else float("nan"),
    }


def sentence(cells: pd.DataFrame) -> str:
    """Say which attacks return most pictures exactly, by strategy, and of which a client is warned.

    Args:
        cells: Of `rows`; controls are left out.
    """
    made = cells[cells["status"].isin([OK, FAILED])]
    parts = []
    for strategy, own in made.groupby("strategy", sort=False):
        most = own[own["exact"] > 0.5].sort_values("batch", kind="stable")
        by = [
            f"{row['attack']} (attacker {row['attacker']}, batches up to {row['batch']:.0f} on "
            f"{row['state']} {row['network']})"
            for row in rows_of(most.drop_duplicates("attack", keep="last"))
        ]
        under = "without a defence" if strategy == "none" else f"under {strategy}"
        verb = "return" if len(by) > 1 else "returns"
        parts.append(f"{under} {listed(by or ['no attack'])} {verb} most pictures exactly")
    warned = [f"{warns} of {n}" for warns, n in (warnings(made, True), warnings(made, False))]
    text = (
        f"{capital('; '.join(parts))}. Signs in the model warn a client of {warned[0]} changed "
        f"models, and of {warned[1]} honest ones."
    )
    n, seeds = made["originals"].max(), made["seeds"].max()
    if n >= ORIGINALS and seeds >= SEEDS:
        return text
    size = f"{counted(int(n), 'original')}, {counted(int(seeds), 'seed')}"
    return f"{text} {capital(size)}: too few for a conclusion."


def warnings(cells: pd.DataFrame, changed: bool) -> tuple[int, int]:
    """Count models with a sign that warns a client, and all models.

    Args:
        cells: Of `rows`, those that apply.
        changed: Whether to count models that the server changed, or honest ones.
    """
    own = cells[cells["attack"].map(_changes) == changed]
    own = own.drop_duplicates(["network", "state", "strategy"])
    return int((own["noticed"] != "").sum()), len(own)


def text(found: Found, folder: Path) -> list[str]:
    """Return the parts of threats.md, and draw the map into the folder."""
    said = sentence(found.rows)
    drawn = threat_map(found.rows, said)
    for ending in ("png", "svg"):
        write_picture(drawn, folder / f"threats.{ending}", "--out", dpi=_DPI)
    return [said, "", found.note, "", *map(writing.markdown, tables(found))]


def tables(found: Found) -> list[Table]:
    """The map as tables to read: cells, signs, controls, and reasons of what has no number."""
    marks = f"{SAYS_NOTHING} {jury_words()}"
    made = found.rows[found.rows["status"].isin([OK, FAILED])]
    key: Cells = {name: partial(_text, name) for name in ("network", "state", "strategy", "batch")}
    cells: Cells = {
        **key,
        "attack": partial(_text, "attack"),
        "attacker": partial(_text, "attacker"),
        "target right": lambda row: f"{row['accuracy']:.0%}{'°' if row['at_chance'] else ''}",
        "ε": lambda row: NONE if pd.isna(row["epsilon"]) else f"{row['epsilon']:.3g}",
        "exact": partial(_count, "exact"),
        "above the baseline": partial(_count, "clearer"),
        "recognised (simulated)": partial(_shown, "people"),
        "grey": lambda row: percent(row["people_grey"]),
        "mean picture": lambda row: percent(row["people_mean"]),
        "client warned": lambda row: "yes" if row["noticed"] else "no",
    }
    model = ["network", "state", "strategy"]
    signs_of: Cells = {
        **{name: key[name] for name in model},
        "what warns": lambda row: row["noticed"] or "nothing",
    }
    return [
        table_of(made, cells, **titled("threats", "cells", marks=marks)),
        table_of(made.drop_duplicates(model), signs_of, **titled("threats", "signs", held=HELD)),
        controls_table(found, {"people": "Recognised by simulated annotators"}),
        reasons_table(found.rows),
    ]


def _text(name: str, row: pd.Series) -> str:
    return f"{row[name]:.0f}" if name == "batch" else str(row[name])


def _shown(name: str, row: pd.Series) -> str:
    return percent(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _count(name: str, row: pd.Series) -> str:
    return f"{row[f'n_{name}']:.0f} of {row['n_attacked']:.0f}, {_shown(name, row)}"


reproduce_threats = command_of(
    JudgedTable(
        name="threats",
        help=(
            "Who can see what of a client's batch: attackers by what they know, batches and "
            "defences, as one map.\n\n"
            "Of untrained and trained networks: pictures that come back exactly, those above the "
            "no-attack baseline, votes of simulated annotators, ε, and what a client could notice. "
            "What was computed before is not again."
        ),
        aim="map",
        files=("threats", "threats", "agreement"),
        facts=(
            *("network", "state", "strategy", "batch", "attack", "attacker", "status", "why"),
            *("originals", "seeds", "n_attacked", "n_ok", "accuracy", "at_chance", "epsilon"),
            *(f"{a}{b}" for a in SHARES for b in ("", "_low", "_high")),
            *(f"n_{one}" for one in SHARES),
            *("people_grey", "people_mean", "noticed", "simulated"),
        ),
        ranks=("metric", "title", "n", "rho", "undefined"),
        scale_of=scale_of,
        plans_of=plans_of,
        before=plan_words,
        rows_of=rows,
        control=lambda title: {
            **dict.fromkeys(("network", "state", "strategy", "attacker", "noticed"), ""),
            **{"attack": title, "status": CONTROL},
        },
        note=jury_note,
        text=text,
        drawn=("threats.png", "threats.svg"),
    )
)
