"""The page Compare and its parts, as a browser asks for them."""

import base64
import re
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from helpers import ended, until
from made_analysis import TESTED, known_of
from made_study import MODELS, make_labels, make_votes, write_import
from made_weights import make_semsim
from scipy import stats

from semsim.base.jobs import folders as jobs
from semsim.base.metric_spec import CALIBRATED, START, is_start
from semsim.learning.default_checkpoint import BUILT_IN
from semsim.people import SOURCES
from semsim.people.get_job import PeopleOrder
from semsim.reporting.glossary import glossary
from semsim.ui import StudyChoice, compare
from semsim.ui.compare import panel
from semsim.ui.compare_data import ComparisonView, held
from semsim.ui.compare_tabs import _families, grid
from semsim.ui.compare_view import TABS, Asked, asked_in

STUDIES = [StudyChoice("1", "First", True), StudyChoice("2", "Second, simulated", True)]
WIDEST = "resnet/none"


def client_of(context, **changes):
    app = FastAPI()
    app.include_router(compare.router(replace(context, **changes)))
    return TestClient(app)


@pytest.fixture(scope="module")
def client(small_context):
    return client_of(small_context)


def part(client, name, **asked):
    reply = client.get(f"/studio/compare/part/{name}", params={"study": "1", **asked})
    assert reply.status_code == 200
    return reply.text


def stop_all(context):
    for job in jobs.list_jobs(context.data / "jobs"):
        jobs.request_stop(job)


def test_the_page_opens_with_the_answer_of_the_study_in_hand(small_context):
    client = client_of(
        small_context,
        in_hand=lambda request: request.query_params.get("study", "1"),
        framed=lambda title, body: f"<title>{title}</title>{body}",
    )
    shown = client.get("/studio/compare?tab=answer").text
    assert shown.startswith("<title>Compare</title><h1>Compare</h1>")
    assert shown.count("<h1") == 1
    assert "rank the 6 models most like simulated annotators do" in re.sub("<[^>]+>", "", shown)
    assert shown.count("imulated votes") >= 1
    assert "People among themselves" not in shown
    assert "Simulated annotators among themselves" in shown
    assert 'id="cmp-tab-answer"' in shown
    assert re.search(r'id="cmp-tab-answer"[^>]*aria-current', shown)


def test_only_what_is_asked_for_is_sent(client):
    parts = {tab: part(client, "panel", tab=tab) for tab in TABS}
    assert "cmp-forest" in parts["answer"]
    for tab, other in (("disagreements", "cmp-grid"), ("metric", "cmp-drawn"), ("files", "CSV")):
        assert other in parts[tab]
        assert "cmp-forest" not in parts[tab]
    side = part(client, "side", metric="psnr")
    assert '<h2 data-term="PSNR">PSNR</h2>' in side
    assert "cmp-forest" not in side


def test_the_numbers_of_the_answer_are_scipys(small_context, client):
    models = held(small_context, ComparisonView(study="1")).analysis.models
    shown = part(client, "panel", tab="answer")
    for name, sign in (("ssim", 1), ("mse", -1)):
        rho = stats.spearmanr(models["human"], sign * models[name]).statistic
        row = re.search(
            rf'<tr[^>]*><th scope="row"><a href="[^"]*metric={name}".*?</tr>', shown, re.S
        )
        assert f"<b>{rho:.2f}</b>".replace("-", "−") in row.group()


def test_a_study_that_is_not_chosen_or_gone_has_a_page_nevertheless(client, small_context):
    bare = client_of(small_context, studies=list)
    shown = bare.get("/studio/compare").text
    assert "There is no study yet" in shown
    assert 'href="/studio/new"' in shown
    assert "No reference is called" in part(client, "body", reference="nothing")
    assert "No human score is called" in part(client, "body", rule="<b>nothing</b>")


def test_a_study_without_votes_says_what_it_needs(made_context):
    context = made_context(n_images=2, votes=0, simulated=False)
    shown = part(client_of(context), "body")
    assert "Its reconstructions have no votes yet" in shown
    assert 'href="/studio/overview"' in shown
    assert "cmp-forest" not in shown
    stop_all(context)


def test_while_there_is_nothing_yet_one_card_says_what_is_computed(made_context):
    """It starts by itself; when it has ended, the page is asked for and has its answer."""
    context = made_context(n_images=3, scored=())
    client = client_of(context)
    first = part(client, "body")
    assert first.count("Computing the metrics") == 1
    # People's own ranking waits for no metric.
    assert re.findall(r'aria-label="Answers".*?<td>(.*?)</td>', first, re.S)
    assert "MSE, PSNR, SSIM" in first
    assert 'data-watch="scoring" data-then="body"' in first
    until(lambda: "data-watch" not in part(client, "scoring"), 120)
    assert part(client, "body", tab="answer").count("cmp-forest") > 0


def test_an_old_answer_stays_while_more_is_scored_and_the_page_opens_on_it(made_context):
    context = made_context(n_images=3)
    client = client_of(context)
    shown = part(client, "body", tab="answer")  # more metrics than three are to be had
    assert "cmp-forest" in shown
    assert 'data-watch="scoring"' in shown
    assert "Computing the metrics" not in shown

    def opens_on(**asked):
        shown = client.get("/studio/compare", params={"study": "1", **asked}).text
        return re.search(r'id="cmp-tab-(\w+)"[^>]*aria-current', shown)[1]

    assert opens_on() == opens_on(metric="psnr") == opens_on(tab="nothing") == "answer"
    assert opens_on(tab="metric") == "metric"
    stop_all(context)


def _attacked(labels):
    """What the attack saw was what it gave back."""
    return labels.assign(attacked=labels["reconstruction"])


def test_the_old_answer_stays_while_another_reference_is_scored(made_context):
    context = made_context(n_images=3, change=_attacked)
    client = client_of(context)
    part(client, "body")
    stop_all(context)
    shown = part(client, "body", reference="attacked", tab="answer")
    assert '<option value="attacked" selected>' in shown
    assert "Computing the metrics" not in shown
    assert "No scores against “Attacked image” yet." in shown
    assert re.search(r'id="cmp-row-\d"[^>]*>MSE</a>', shown)
    assert "<h2>MSE</h2>" in part(client, "side", reference="attacked", metric="mse")
    assert "reference=attacked" not in part(client, "panel", reference="attacked", tab="files")
    stop_all(context)


def test_where_nobody_judged_these_pictures_yet_none_are_said_to_agree(small_context):
    """A few votes, all on other originals than those that are looked at."""
    comparison = held(small_context, ComparisonView(study="1"))
    analysis = comparison.analysis
    agreement = analysis.agreement.assign(rho=np.nan)
    few = replace(analysis, agreement=agreement, disagreement=analysis.disagreement.head(0))
    unjudged = replace(comparison, analysis=few)
    told = grid(small_context, unjudged, Asked(study="1"))
    assert "has both votes and a value of" in told
    assert "agree on all" not in told

    alike = analysis.disagreement.assign(gap=0.0, metric_share=0.5, human_share=0.5)
    agreed = replace(comparison, analysis=replace(analysis, disagreement=alike))
    told = grid(small_context, agreed, Asked(study="1", metric="psnr"))
    assert "None: simulated annotators and PSNR agree on all of 18 pictures." in told


def test_where_no_metric_is_ranked_the_page_opens_on_the_answer(small_context):
    """Though pictures differ, which a metric that nobody chose would be blamed for."""
    comparison = held(small_context, ComparisonView(study="1"))
    agreement = comparison.analysis.agreement.assign(rho=np.nan)
    assert len(comparison.analysis.disagreement)
    unranked = replace(comparison, analysis=replace(comparison.analysis, agreement=agreement))
    shown = panel(small_context, unranked, Asked(study="1"))
    assert 'id="cmp-tab-answer"' in shown
    assert re.search(r'id="cmp-tab-(\w+)"[^>]*aria-current', shown)[1] == "answer"
    assert "can be compared with people" in shown


def test_choices_have_names_for_people(client):
    shown = part(client, "body", rule="mean-response")
    assert '<option value="majority">Majority of votes (protocol)</option>' in shown
    assert '<option value="mean-response" selected>Share of votes</option>' in shown
    assert "The protocol fixed &#39;Majority of votes&#39; before the first vote." in shown
    assert '<option value="clean" selected>Clean original</option>' in shown


def test_the_share_of_votes_beside_an_attacked_image_that_was_never_scored(made_context):
    context = made_context(n_images=3, scored=("mse",), change=_attacked)
    client = client_of(context)
    shown = part(client, "body", rule="mean-response", reference="attacked", tab="answer")
    stop_all(context)
    assert "No scores against “Attacked image” yet." in shown
    assert 'role="alert"' not in shown
    # Both choices stay, so that each can be taken back.
    assert '<option value="mean-response" selected>' in shown
    assert '<option value="attacked" selected>' in shown
    assert "cmp-forest" in part(client, "panel", rule="mean-response", reference="attacked")
    assert "cmp-forest" in part(client, "body", rule="mean-response", reference="clean")


def test_what_a_semsim_learned_from_is_left_out_and_can_be_brought_back(made_context):
    context = made_context(n_images=3)
    make_semsim(context.checkpoints / f"{BUILT_IN}.safetensors", ["symbols/000", "symbols/001"])
    context = made_context(n_images=3, scored=("mse", f"semsim:{BUILT_IN}"))
    client = client_of(context)
    shown = part(client, "body")
    assert '<option value="" selected>the 1 of 3 that no SemSim here has seen' in shown
    words = "All this is on the 1 of 3 originals that no SemSim here has seen"
    assert words in part(client, "panel", tab="answer")
    assert words not in part(client, "panel", tab="answer", originals="all")
    shown = part(client, "body", originals="all")
    assert '<option value="all" selected>all 3, also what a SemSim learned from' in shown
    stop_all(context)


def test_disagreements_can_be_filtered_and_looked_at(made_context):
    def swap(labels):  # people recognise what the metric calls worst, and nothing else
        worst = labels["model"] == MODELS[-1]
        return labels.assign(n_recognised=worst.map({True: 5, False: 0}))

    client = client_of(made_context(n_images=3, change=swap, simulated=False))
    shown = part(client, "grid", metric="mse")
    assert "missed leaks (3)" in shown
    assert shown.count("<figure") == 3
    assert shown.count('st-leaked">5 of 5') == 3
    alarms = part(client, "grid", metric="mse", way="alarms")
    assert 'st-private">0 of 5' in alarms
    key = f"symbols\ninvgrad\n{WIDEST}"
    own = part(client, "grid", metric="mse", way="alarms", model=key)
    assert set(re.findall(r'cmp-model" title="([^"]+)"', own)) == {WIDEST}
    assert "<strong>3</strong> pictures that MSE rates as leaked" in own
    single = client_of(made_context(n_images=1, change=swap, simulated=False))
    assert "<strong>1</strong> picture that people recognise" in part(single, "grid", metric="mse")
    row = re.search(r'data-row="(\d+)"', own)[1]
    pair = part(client, "pair", row=row)
    assert pair.count("<img") == 2
    assert "PSNR (dB), higher is closer" in pair
    assert "MSE, lower is closer" in pair
    assert "<dt>metric, lower is closer</dt>" in own
    assert "gone" in part(client, "pair", row="999")


def test_simulated_votes_are_no_verdict(client):
    shown = part(client, "pictures", model=f"symbols\ninvgrad\n{WIDEST}")
    assert shown.count("<figure") == 3
    assert 'st-open">5 of 5' in shown
    assert "st-leaked" not in shown
    assert "<dt>program</dt>" in shown
    for way in ("models", "ranks", "images"):
        drawn = part(client, "panel", tab="metric", metric="mse", shown=way)
        said = drawn.partition('id="cmp-pictures"')[0]
        assert not re.search('(?<!sv-)(?<!kind=")people', said, re.IGNORECASE)


def test_pictures_are_the_files_themselves_and_a_lost_one_is_no_error(made_context, image_bytes):
    context = made_context(n_images=2)
    client = client_of(context)
    shown = part(client, "pair", row="0")
    sent = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', shown)[1])
    assert sent == image_bytes("originals/000.png")
    labels = context.labels("1").assign(original="/gone.png")
    lost = part(client_of(context, labels=lambda study: labels, kept={}), "body")
    assert "st-problem" in lost or "cmp-" in lost
    stop_all(context)


@pytest.mark.parametrize("shown", ["models", "ranks", "images"])
def test_one_metric_is_shown_three_ways(client, shown):
    drawn = part(client, "panel", tab="metric", metric="mse", shown=shown)
    assert len(set(re.findall(r'data-key="([^"]+)"', drawn))) == {"images": 18}.get(shown, 6)
    assert drawn.count("<img") == 6  # of the model that people recognise best


def test_a_model_stands_with_how_good_it_was_and_whether_it_guesses(made_context):
    client = client_of(made_context(n_images=2, change=lambda table: known_of(table, *MODELS[:2])))

    for model, said in zip(MODELS, [*TESTED, "not kept"], strict=False):
        key = f"symbols\ninvgrad\n{model}"
        asked = {"tab": "metric", "metric": "mse", "model": key}
        drawn = part(client, "panel", shown="models", **asked)
        assert re.search(rf'"{model}: MSE [^"]*, target {re.escape(said)}"', drawn)
        ranks = part(client, "panel", shown="ranks", **asked).replace("<wbr>", "")
        (row,) = re.findall(rf"<tr><th[^>]*><a[^>]*>{model}</a>.*?</tr>", ranks, re.S)
        assert f"<td>{said}</td>" in row
        shown = part(client, "pictures", **asked)
        assert f'<span class="st-note">target {said}</span>' in shown
        large = part(client, "pair", row=re.search(r'data-row="(\d+)"', shown)[1])
        assert f"<dt>target</dt><dd>{said}</dd>" in large


def test_reconstructions_of_an_original_stand_in_a_line_by_the_metric(client):
    drawn = part(client, "panel", tab="metric", metric="mse", shown="originals")
    lines = drawn.split('class="cmp-line"')[1:]
    assert len(lines) == 3
    for line in lines:
        assert line.count("<img") == 1 + 6  # the original, and a reconstruction a model
        values = [float(text) for text in re.findall(r"</span> ([-0-9.e]+)</figcaption>", line)]
        assert values == sorted(values)  # a lower MSE leaks more
        assert len(re.findall(r">[✓✗?]</span>", line)) == 6
    assert 'id="cmp-pictures"' not in drawn


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("rules", "Whichever rule is chosen,"),
        ("reference", "No set of this study records what was attacked"),
        ("influence", "Leave out any one model,"),
        ("differences", "in how it orders pairs of them (swaps of scores, original by"),
        ("differences", "differs from 0 of 2 other metrics (ρ over models; p after Holm below"),
        ("images", "a coin does in 50%."),
        ("matrix", "two metrics that rank them alike"),
        ("several", "Made"),
    ],
)
def test_how_solid_answers_one_question_at_a_time(client, shown, said):
    drawn = part(client, "panel", tab="solid", shown=shown)
    assert said in drawn
    assert drawn.count('aria-current="true"') >= 1


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ("rules", {"rho", "PSNR", "SSIM"}),
        ("influence", {"rho", "PSNR", "SSIM"}),
        ("differences", {"rho", "PSNR", "SSIM"}),
        ("images", {"AUC", "PSNR", "SSIM"}),
        ("matrix", {"rho", "PSNR", "SSIM"}),
    ],
)
def test_how_solid_explains_its_words(client, shown, words):
    drawn = part(client, "panel", tab="solid", shown=shown, metric="mse")
    assert words <= set(re.findall(r'data-term="([^"]+)"', drawn)) <= set(glossary())


def test_a_reference_that_no_set_records_is_not_offered(client):
    drawn = part(client, "panel", tab="solid", shown="reference")
    assert "Score against it" not in drawn
    shown = part(client, "body", tab="answer")
    assert '<option value="clean" selected>' in shown
    assert '<option value="attacked"' not in shown
    assert '<option value="both"' not in shown


def test_a_reference_that_no_set_records_is_said_and_starts_nothing(made_context):
    context = made_context(n_images=3)
    client = client_of(context)
    part(client, "body")
    stop_all(context)
    n_jobs = len(jobs.list_jobs(context.data / "jobs"))
    shown = part(client, "body", reference="attacked", tab="answer")
    assert "No set of this study records what was attacked, so everything" in shown
    assert '<option value="clean" selected>' in shown
    assert len(jobs.list_jobs(context.data / "jobs")) == n_jobs


def test_what_was_never_scored_is_scored_by_a_press(made_context):
    client = client_of(made_context(n_images=3, change=_attacked))
    drawn = part(client, "panel", tab="solid", shown="reference")
    assert "Nothing is scored against this reference yet: Attacked image" in drawn
    assert '<option value="both"' in part(client, "body", tab="answer")
    link = re.search(r'href="([^"]+)" data-part="body" data-set="reference=attacked"', drawn)[1]
    assert asked_in(dict(parse_qsl(urlsplit(unescape(link)).query))).reference == "attacked"


def test_labels_that_came_without_votes_are_compared(made_context, tmp_path):
    context = made_context(n_images=2)
    labels = make_labels(tmp_path / "others", n_images=4, simulated=False)
    votes, models = make_votes(labels), labels["model"].astype("category").cat.codes
    labels = labels.assign(
        n_votes=0,
        n_recognised=0,
        mean_response=np.nan,
        headline="released",
        **{"human:released": (labels["image_id"].astype(int) > models).astype("boolean")},
    )
    scores = labels[["dataset", "attack", "model", "image_id"]].assign(
        metric="psnr", value=np.linspace(30, 10, len(labels))
    )
    bare = labels.drop(columns=["original", "reconstruction"])
    tables = {"labels": bare, "scores": scores, "votes": votes.iloc[:0]}
    write_import(context.data / "imports" / "theirs", tables, "released")
    client = client_of(context)
    drawn = part(client, "body", study="import:theirs")
    assert "needs its first votes" not in drawn
    assert "PSNR" in drawn
    assert "released (protocol)" in drawn
    answer = part(client, "panel", study="import:theirs", tab="answer")
    assert "cmp-two" in answer  # metrics beside the models they rank
    told = part(client, "panel", study="import:theirs", tab="disagreements")
    assert "labels and no votes" in told
    assert "agree on all" not in told

    foreign = scores.assign(metric="theirs", leaks="higher")  # ours would be computed first
    shown = {**tables, "labels": labels, "scores": foreign}
    write_import(context.data / "imports" / "shown", shown, "released")
    part(client, "body", study="import:shown")
    stop_all(context)
    first = client.get("/studio/compare", params={"study": "import:shown"}).text
    assert re.search(r'id="cmp-tab-answer"[^>]*aria-current', first)  # not an empty tab
    cards = part(client, "panel", study="import:shown", tab="metric", metric="theirs")
    assert "no votes yet" not in cards
    assert '<span class="st-leaked">recognised</span>' in cards


def with_people(context, root):
    """The context with a study of people that came with the product, without pictures."""
    labels = make_labels(root / "made", n_images=4, simulated=False)
    bare = labels.drop(columns=["original", "reconstruction"])
    shares = bare["model"].rank(method="dense") / 100
    scores = bare[["dataset", "attack", "model", "image_id"]].assign(metric="psnr", value=shares)
    tables = {"labels": bare.assign(**{"human:people": shares}), "scores": scores}
    tables["votes"] = make_votes(labels).iloc[:0]
    write_import(root / "people/recurrent", tables, "people")
    return replace(context, built_in=(root,))


def test_the_page_opens_with_people_where_no_study_is_chosen(made_context, tmp_path):
    context = with_people(made_context(n_images=2), tmp_path)
    simulated = replace(context, studies=lambda: STUDIES, voted=lambda: ["1"])
    reply = client_of(simulated).get("/studio/compare?tab=files", follow_redirects=False)
    assert reply.headers["location"] == "?tab=files&study=import%3Arecurrent"
    chosen = client_of(simulated, chosen=lambda request: "1")
    assert chosen.get("/studio/compare", follow_redirects=False).status_code == 200
    own = [StudyChoice("1", "Own", False)]
    client = client_of(simulated, studies=lambda: own)
    assert client.get("/studio/compare", follow_redirects=False).status_code == 200


def test_pictures_of_a_known_source_are_fetched_by_a_job(made_context, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "start", lambda job: None)  # nothing is fetched here
    context = with_people(made_context(n_images=2), tmp_path)
    client, study = client_of(context), {"study": "import:recurrent"}
    drawn = part(client, "pictures", **study, metric="psnr")
    assert f"Fetch the pictures (at most {SOURCES['recurrent'].megabytes} MB)" in drawn
    assert "MIT" in drawn
    reply = client.post("/studio/compare/act/people", params=study)
    assert 'data-watch="people"' in reply.text
    (job,) = jobs.list_jobs(context.data / "jobs", "people")
    again = client.post("/studio/compare/act/people", params=study)
    assert 'data-watch="people"' in again.text
    assert len(jobs.list_jobs(context.data / "jobs", "people")) == 1
    order = PeopleOrder(name="recurrent", data=context.data.resolve())
    assert jobs.read_order(job, PeopleOrder) == order
    stop_all(context)


def test_several_studies_stand_in_one_table(made_context):
    client = client_of(made_context(n_images=2), studies=lambda: STUDIES)
    drawn = part(client, "panel", tab="solid", shown="several", several="1 2")
    assert drawn.count('<th scope="row">First') == drawn.count('<th scope="row">Second') > 0
    bare = client_of(made_context(n_images=3, scored=()), studies=lambda: STUDIES)
    assert "No scores yet: First, Second" in part(
        bare, "panel", tab="solid", shown="several", several="1 2"
    )


def test_the_report_is_made_once_and_handed_over(made_context):
    context = made_context(n_images=2)
    client = client_of(context)
    part(client, "body")
    asked = client.post("/studio/compare/act/report", params={"study": "1"}).text
    assert 'data-watch="made"' in asked
    until(lambda: 'data-watch="made"' not in part(client, "made"), 120)
    assert "Download report.html" in part(client, "made")
    n_jobs = len(jobs.list_jobs(context.data / "jobs"))
    assert "Download report.html" in client.post("/studio/compare/act/report?study=1").text
    assert len(jobs.list_jobs(context.data / "jobs")) == n_jobs
    assert "Download" not in part(client, "made", rule="mean-response")
    stop_all(context)


def test_a_job_can_be_stopped_from_the_page(made_context):
    context = made_context(n_images=2, scored=())
    client = client_of(context)
    part(client, "body")
    (job,) = jobs.list_jobs(context.data / "jobs")
    client.post(f"/studio/compare/act/stop?study=1&job={job.id}")
    ended(job)
    refused = client.post("/studio/compare/act/stop?study=1&job=../x")
    assert refused.status_code == 404  # or what it says would stand in the place of the page
    assert "not a job" in refused.json()["error"]


def test_names_cannot_bring_html(made_context):
    evil = "<script>alert(1)</script>"

    def poison(labels):
        return labels.assign(model=labels["model"] + evil, class_name=evil)

    client = client_of(made_context(n_images=3, change=poison))
    for tab in TABS:
        assert "<script>alert" not in part(client, "panel", tab=tab), tab
    for shown in ("ranks", "images", "originals", "rules", "influence"):
        tab = "metric" if shown in ("ranks", "images", "originals") else "solid"
        assert "<script>alert" not in part(client, "panel", tab=tab, shown=shown), shown
    assert "<script>alert" not in part(client, "pair", row="0")


def test_an_address_holds_every_choice():
    asked = Asked(study="1", tab="metric", model="a\nb")
    query = dict(pair.split("=") for pair in asked.to(metric="x").partition("?")[2].split("&"))
    assert query == {"study": "1", "tab": "metric", "model": "a%0Ab", "metric": "x"}
    assert asked_in({"study": "1", "unknown": "x", "at": "no"}).start == 0


def test_a_broken_table_of_scores_is_named_and_takes_the_page_from_nobody(small_context):
    own = small_context.data / "scores/own"
    own.mkdir(parents=True, exist_ok=True)
    (own / "x.parquet").write_bytes(b"PAR1 broken")
    try:
        client = client_of(small_context, in_hand=lambda request: "1")
        shown = client.get("/studio/compare?tab=answer")
        assert shown.status_code == 200
        panels = [part(client, "panel", tab=tab) for tab in TABS]
        assert any("x.parquet" in text for text in (shown.text, *panels))
    finally:
        (own / "x.parquet").unlink()
        stop_all(small_context)


def test_controls_stand_below_their_semsim():
    names = [f"semsim:a.{START}", "mse", "semsim:b@clean", "semsim:a", f"semsim:b.{START}@clean"]
    names = [*names, f"semsim:b.{CALIBRATED}@clean"]
    rows = [{"name": name, "control": is_start(name)} for name in [*names, f"semsim:gone.{START}"]]
    found = {row["name"]: [one["name"] for one in below] for row, below in _families(rows)}
    assert found == {
        "mse": [],
        "semsim:b@clean": [f"semsim:b.{START}@clean"],
        f"semsim:b.{CALIBRATED}@clean": [],
        "semsim:a": [f"semsim:a.{START}"],
        f"semsim:gone.{START}": [],
    }
