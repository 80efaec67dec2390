from dataclasses import replace

import numpy as np
from made_analysis import made_analysis
from made_votes import table_of

from semsim.base.stats.analysis import AnalysisSettings
from semsim.base.stats.ceiling import Ceiling
from semsim.base.words import jury_words
from semsim.metrics import MetricSpec
from semsim.reporting.answer import answer_of
from semsim.reporting.figures import figure
from semsim.reporting.methods import Origin, facts, metric_table, sections, warnings
from semsim.reporting.report import report_html

SIMULATED = (
    "Simulated votes: not human data. The numbers below are no evidence about people. "
    + jury_words()
)


def text(analysis, origin=None):
    return "\n".join(
        paragraph for _, parts in sections(analysis, origin or Origin()) for paragraph in parts
    )


def test_simulated_votes_are_said_first_then_departures_then_notes():
    analysis = made_analysis(simulated=True)
    said = warnings(analysis, Origin(protocol="mean-response"))
    assert said[0] == SIMULATED
    assert "protocol fixed the human score 'Share of votes'" in said[1]
    assert "'Majority of votes'" in said[1]
    assert said[2:] == list(analysis.notes)


def test_votes_of_a_model_are_said_to_be_a_model_s_and_never_simulated_or_people_s():
    evidence = replace(made_analysis(simulated=True).evidence, voter="model:toy-vl")
    analysis = replace(made_analysis(simulated=True), evidence=evidence)
    first = warnings(analysis, Origin())[0]
    assert first.startswith("Votes of the model toy-vl: not human data.")
    assert facts(analysis)["Votes by"] == "programs (toy-vl)"
    assert "The model toy-vl voted in this study" in answer_of(analysis).beside[0]
    assert figure(analysis, "matrix").title.endswith("(votes of the model toy-vl)")
    told = report_html(analysis)
    assert first in told
    assert SIMULATED not in told


def test_people_and_the_protocols_own_score_need_no_warning(analysis):
    assert warnings(analysis, Origin(protocol="majority")) == list(analysis.notes)
    assert warnings(analysis, Origin()) == list(analysis.notes)


def test_facts_count_what_is_there(analysis):
    found = facts(analysis)
    votes = int(np.isfinite(table_of(analysis.evidence.recognised)).sum())
    assert found["Counted votes"] == str(votes) == "115"
    assert found["Reconstructions"] == "24"
    assert found["Originals"] == "6"
    assert found["Models"] == "4"
    assert found["Votes by"] == "people"
    assert facts(made_analysis(simulated=True))["Votes by"] == "programs (simulated)"


def test_pictures_that_nobody_saw_are_not_said_to_have_votes(analysis):
    evidence = analysis.evidence
    said, first = evidence.recognised, evidence.recognised.image < 3
    own = {name: getattr(said, name)[first] for name in ("image", "annotator", "values")}
    assert "counted votes on 23 of 24 reconstructions" in text(analysis)
    few = replace(evidence, recognised=replace(said, **own))
    assert "on 3 of 24 reconstructions" in text(replace(analysis, evidence=few))


def test_the_text_states_this_analysis_and_its_settings(analysis):
    said = text(analysis, Origin(collection="Asked on paper."))
    for words in (
        *("5 annotators gave 115 counted votes on 23 of 24 reconstructions", "Asked on paper."),
        *(
            "99 random ones",
            "50 bootstraps over models",
            "seed 3",
            "split into 2 and 3",
            "Wilson's score interval",
        ),
        *("Bonett and Wright", "corrected after Holm", "'Share of votes' is the share of votes"),
    ):
        assert words in said
    other = replace(analysis, settings=AnalysisSettings(bootstraps=77, seed=8))
    assert "77 bootstraps over models" in text(other)
    assert "seed 8" in text(other)


def test_an_undefined_ceiling_and_a_given_label(analysis):
    other = replace(
        analysis,
        ceiling=Ceiling(undefined="one annotator"),
        settings=AnalysisSettings(headline="released"),
    )
    said = text(other)
    assert "Undefined: one annotator." in said
    assert "'released' is a label that came with the data" in said


def test_metrics_are_listed_with_direction_reference_and_settings(analysis):
    attacked = MetricSpec(
        **{"name": "psnr@attacked", "title": "PSNR (attacked)", "reference": "attacked"},
        **{"higher_means_more_leakage": True, "per_image": True},
    )
    uniform = MetricSpec(
        **{"name": "ssim-uniform", "title": "SSIM (uniform window)"},
        **{"higher_means_more_leakage": True, "per_image": True},
    )
    listed = replace(analysis, specs=(*analysis.specs, attacked, uniform))
    rows = metric_table(listed).cells.set_index("Name")
    assert rows.loc["psnr@attacked", "Compared with"] == "attacked image"
    assert rows.loc["psnr", "Compared with"] == "clean original"
    assert rows.loc["psnr", "Metric"] == "PSNR (dB)"
    assert rows.loc["mse", "More leakage"] == "lower"
    assert rows.loc["fid", "Unit"] == "a whole set"
    assert '"window": "uniform"' in rows.loc["ssim-uniform", "Settings"]
    assert rows.loc["flat:x", "Settings"].startswith("not known")
