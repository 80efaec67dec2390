"""An analysis made up for tests of reporting: every column filled by hand, edges included."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
from made_votes import said

from semsim.base.columns import TARGET_COLUMNS
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.agreement import DISAGREEMENT_COLUMNS
from semsim.base.stats.analysis import Analysis, AnalysisSettings
from semsim.base.stats.ceiling import Ceiling
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.pairwise_accuracy import LEAD_COLUMNS, OF_SETS, ORDER_COLUMNS
from semsim.base.stats.roc import AUC_COLUMNS

SPECS = (
    MetricSpec(
        name="psnr", title="PSNR", unit="dB", higher_means_more_leakage=True, per_image=True
    ),
    MetricSpec(name="mse", title="MSE", higher_means_more_leakage=False, per_image=True),
    MetricSpec(name="flat:x", title="<Flat> & co", higher_means_more_leakage=True, per_image=True),
    MetricSpec(name="fid", title="FID", higher_means_more_leakage=False, per_image=False),
)
WHY = "metric: the same value for every model"
RULES = ("majority", "mean-response")
# How good the targets of `with_targets` were, and what is said of it; of others nothing was kept.
TESTS = ((0.71, 1 / 47, False, None, None), (0.02, 1 / 47, True, 8.126, 1e-5))
TESTED = ("71% right (chance 2%)", "2% right: at chance (2%), ε = 8.13 at δ = 1e-05")


def made_analysis(
    n_models: int = 4, n_images: int = 6, *, simulated: bool = False, specs=SPECS
) -> Analysis:
    """Models that leak less and less; PSNR agrees, MSE ranks backwards, `flat:x` is constant.

    The first image of the first model has an infinite PSNR, and the mean PSNR of the last model
    is infinite. Nobody has voted on the last image of the first model.
    """
    models = _models(n_models, n_images, specs)
    return Analysis(
        evidence=_evidence(models, n_images, simulated, specs),
        settings=AnalysisSettings(bootstraps=50, permutations=99, seed=3),
        specs=tuple(specs),
        models=models,
        agreement=pd.DataFrame([_agreement(spec, n_models) for spec in specs]),
        ceiling=Ceiling(
            n_annotators=5,
            sizes=(2, 3),
            n_splits=10,
            n_models=n_models,
            rho=0.9,
            tau=0.8,
            rho_low=0.7,
            rho_high=0.95,
            tau_low=0.6,
            tau_high=0.9,
        ),
        backbones=pd.DataFrame([_backbone(spec) for spec in specs]),
        differences=pd.DataFrame(_differences(specs)),
        order=pd.DataFrame(_order(specs, n_models, n_images), columns=ORDER_COLUMNS),
        leads=pd.DataFrame(_leads(specs, n_models, n_images), columns=LEAD_COLUMNS),
        auc=pd.DataFrame(
            [row for spec in specs if spec.per_image for row in _auc(spec)], columns=AUC_COLUMNS
        ),
        rules=pd.DataFrame([_rule(rule, spec, n_models) for rule in RULES for spec in specs]),
        stability=pd.DataFrame(_stability(models, specs)),
        disagreement=_disagreement(n_models * n_images, specs),
        matrix=_matrix(specs),
        notes=("2 images have scores but no votes.",),
    )


def with_targets(analysis: Analysis) -> Analysis:
    """The same where it is known how good the first two target models were: `TESTED`."""
    names = analysis.models["model"].tolist()
    evidence = replace(
        analysis.evidence, images=known_of(analysis.evidence.images, *names[: len(TESTS)])
    )
    known = known_of(analysis.models, *names[: len(TESTS)])
    return replace(analysis, evidence=evidence, models=known)


def known_of(table: pd.DataFrame, *models: str) -> pd.DataFrame:
    """A table with a column `model` and what is known of the tests of the first of `models`."""
    tests = dict(zip(models, TESTS, strict=True))
    found = [tests.get(model, (None,) * len(TARGET_COLUMNS)) for model in table["model"]]
    return table.assign(**dict(zip(TARGET_COLUMNS, zip(*found, strict=True), strict=True)))


def empty_analysis() -> Analysis:
    """A study of one model in which nothing has been scored and nobody has voted."""
    full = made_analysis(1, 2)
    evidence = replace(
        full.evidence,
        annotators=(),
        recognised=said(np.empty((2, 0))),
        none=said(np.empty((2, 0))),
        scores={},
    )
    tables = (
        *("agreement", "backbones", "differences", "order", "leads", "auc", "rules", "stability"),
        "disagreement",
    )
    return replace(
        full,
        evidence=evidence,
        specs=(),
        ceiling=Ceiling(undefined="fewer than two annotators"),
        **{name: getattr(full, name).iloc[:0] for name in tables},
        matrix=pd.DataFrame(),
        notes=(),
    )


def _order(specs, n_models, n_images):
    """PSNR leads, MSE is behind, `flat:x` orders nothing, and FID judges sets."""
    for place, spec in enumerate(specs):
        row = {"metric": spec.name, "title": spec.title, "mark": spec.mark, "band": place + 1}
        row |= {"n_models": n_models, "n_originals": n_images}
        if spec.per_image:
            soft = {"soft_accuracy": 0.9 - 0.2 * place, "hard_accuracy": 0.8 - 0.2 * place}
            yield row | soft | {"tied_accuracy": 0.7, "epsilon": 0.1, "ties_alone": 0.6}
        else:
            yield row | {"band": 0, "undefined": OF_SETS}


def _leads(specs, n_models, n_images):
    for a, b in itertools.combinations(specs, 2):
        row = {"metric_a": a.name, "title_a": a.title, "metric_b": b.name, "title_b": b.title}
        row |= {"n_models": n_models, "n_originals": n_images}
        if a.per_image and b.per_image:
            yield row | {"difference": 0.2, "p": 0.01, "p_holm": 0.02, "p_models": 0.3}
        else:
            yield row | {"undefined": OF_SETS}


def _models(n_models, n_images, specs):
    step = np.arange(n_models)
    table = pd.DataFrame(
        {
            "dataset": "symbols",
            "attack": "invgrad",
            "model": [f"resnet/{i}" for i in step],
            "label": [f"resnet/{i} <b>" for i in step],
            "backbone": "resnet",
            "n_images": n_images,
            "n_decided": n_images - 1,
            "n_undecided": 1,
            "human": 0.9 - 0.6 * step / max(1, n_models - 1),
        }
    )
    table["human_low"], table["human_high"] = table["human"] - 0.05, table["human"] + 0.05
    for spec in specs:
        values = 1.0 * np.ones(n_models) if spec.name == "flat:x" else 20.123456789 - step
        if spec.name == "psnr":
            values[-1] = np.inf
        table[spec.name] = values
        table[f"{spec.name}:low"], table[f"{spec.name}:high"] = values - 0.5, values + 0.5
        table[f"{spec.name}:n_inf"] = (values == np.inf) * n_images
    return table


def _evidence(models, n_images, simulated, specs):
    rows = [
        {**model[["dataset", "attack", "model"]], "image_id": f"{i:03}", "class_name": "cat"}
        for _, model in models.iterrows()
        for i in range(n_images)
    ]
    size = len(rows)
    votes = (np.arange(size)[:, None] + np.arange(5)) % 3 > 0
    recognised = votes.astype(float)
    recognised[n_images - 1] = np.nan
    values = np.linspace(30, 5, size)
    values[0] = np.inf
    return Evidence(
        name="made <study>",
        simulated=simulated,
        images=pd.DataFrame(rows),
        annotators=tuple("abcde"),
        recognised=said(recognised),
        none=said(1 - recognised),
        votes_per_item=5,
        given={},
        scores={spec.name: values.copy() for spec in specs if spec.per_image},
        set_scores={},
    )


def _agreement(spec, n):
    # fmt: off
    row = {
        "metric": spec.name, "title": spec.title, "mark": "", "n": n, "rho": 0.6703, "tau": 0.4725,
        "abs_rho": 0.6703, "abs_tau": 0.4725, "p_rho": 0.0104, "p_tau": 0.0187, "p_kind": "exact",
        "rho_bw_low": 0.18, "rho_bw_high": 0.89, "tau_score_low": 0.12, "tau_score_high": 0.75,
        "rho_note": None,
        "interval_undefined": None, "rho_models_low": 0.2, "rho_models_high": 0.91,
        "tau_models_low": 0.1, "tau_models_high": 0.77, "rho_images_low": 0.6,
        "rho_images_high": 0.72, "tau_images_low": 0.4, "tau_images_high": 0.5,
        "models_undefined": None, "images_undefined": None,
        "loo_rho_min": 0.6, "loo_rho_max": 0.75, "loo_tau_min": 0.4, "loo_tau_max": 0.55,
        "loo_model_min": "resnet/0", "loo_model_max": "resnet/1", "loo_undefined": None,
        "undefined": None,
    }
    # fmt: on
    if spec.name == "mse":
        row |= {"rho": -0.6176, "tau": -0.4286, "abs_rho": 0.6176, "abs_tau": 0.4286}
        row |= {"rho_bw_low": -0.9, "rho_bw_high": -0.1, "p_rho": 0.00002}
    if spec.name == "flat:x":
        numbers = {key for key, value in row.items() if isinstance(value, float)}
        row |= dict.fromkeys(numbers, np.nan) | {"undefined": WHY}
    return row


def _backbone(spec):
    undefined = "2 models; a ranking needs at least 3"
    return {
        **{"metric": spec.name, "title": spec.title, "left_out": "resnet", "n": 2},
        **{"rho": np.nan, "tau": np.nan, "undefined": undefined},
    }


def _differences(specs):
    return [
        {
            **{"metric_a": a.name, "title_a": a.title, "metric_b": b.name, "title_b": b.title},
            **{"n": 4, "difference": 0.05, "low": -0.3, "high": 0.4, "p": 0.4, "p_holm": 1.0},
            **{"interval_undefined": None, "undefined": None},
        }
        for i, a in enumerate(specs)
        for b in specs[i + 1 :]
    ]


def _auc(spec):
    defined = spec.name != "flat:x"
    return [
        {
            **{"metric": spec.name, "title": spec.title, "scope": scope},
            **{"auc": 0.6 + 0.05 * i if defined else np.nan},
            **{"low": 0.55 if defined else np.nan, "high": 0.75 if defined else np.nan},
            **{"n_positive": 12, "n_negative": 11, "n_groups": i + 1},
            "undefined": None if defined else "the same value for every image",
        }
        for i, scope in enumerate(("pooled", "within model", "within original"))
    ]


def _rule(rule, spec, n):
    defined = spec.name != "flat:x"
    return {
        **{"rule": rule, "metric": spec.name, "title": spec.title, "n": n},
        **{"rho": 0.6 if defined else np.nan, "tau": 0.4 if defined else np.nan},
        **{"n_images": 24, "n_left_out": 1, "undefined": None if defined else WHY},
    }


def _stability(models, specs):
    return [
        {
            **{"measure": measure, "title": title, "label": model["label"]},
            "model_key": "\n".join(model[["dataset", "attack", "model"]]),
            **{"rank": i + 1.0, "low": max(1.0, i), "high": i + 2.0},
        }
        for measure, title in (("people", "people"), *((s.name, s.title) for s in specs))
        for i, (_, model) in enumerate(models.iterrows())
    ]


def _disagreement(size, specs):
    tables = []
    for spec in specs:
        if not spec.per_image:
            continue
        human, metric = np.linspace(0, 1, size), np.linspace(1, 0, size)
        tables.append(
            pd.DataFrame(
                {
                    **{"metric": spec.name, "row": np.arange(size), "human": human},
                    **{"value": np.linspace(30, 5, size), "human_share": human},
                    **{"metric_share": metric, "gap": metric - human},
                }
            )
        )
    empty = pd.DataFrame(columns=DISAGREEMENT_COLUMNS)
    return pd.concat(tables, ignore_index=True) if tables else empty


def _matrix(specs):
    titles = ["People", *(spec.title for spec in specs)]
    values = np.full((len(titles), len(titles)), -0.25)
    np.fill_diagonal(values, 1.0)
    return pd.DataFrame(values, index=titles, columns=titles)
