"""What the panel says of a job in each of its states."""

import os
from html.parser import HTMLParser

import gradio as gr
import pytest

from semsim.base.errors import JobError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import JobState, owner_now
from semsim.base.progress import Progress
from semsim.base.storage.atomic import write_json
from semsim.base.words import words_for_seconds
from semsim.lab.markup import alert_html
from semsim.ui import jobpanel
from semsim.ui.jobpanel import JobView


class Page(HTMLParser):
    """Text and tags of a piece of HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)

    def bar(self):
        (bar,) = [attrs for _, attrs in self.tags if attrs.get("role") == "progressbar"]
        return bar["aria-valuenow"]


def draw(**changes):
    plain = {
        "title": "Train a",
        "state": JobState.RUNNING,
        "stopping": False,
        "progress": Progress(1, 4, "epoch 1"),
        "seconds": 125.0,
        "error": "",
    }
    return Page(JobView(**(plain | changes)).html)


@pytest.fixture
def job(tmp_path):
    return jobs.create(tmp_path, kind="test", title="A job")


def test_a_list_of_jobs_says_when_they_were_made(tmp_path, job):
    ((words, of),) = jobpanel.chooser(tmp_path, "test", None).choices
    assert words == f"A job · {job.created[:10]} {job.created[11:16]} UTC"
    assert of == job.id


def visible(updates):
    """Which of stop, resume and log are shown, and whether the page goes on looking."""
    _, stop, resume, details, _, timer = updates
    return stop.visible, resume.visible, details.visible, timer.active


def test_a_running_job_shows_its_share_and_the_time_left():
    page = draw()
    assert page.bar() == "25"
    assert "25% · epoch 1 · about 2 min 5 s left" in page.text
    assert "Running" in page.text


def test_a_job_that_is_to_stop_says_so():
    assert "Stopping" in draw(stopping=True).text
    assert "Stopping" not in draw(stopping=True, state=JobState.STOPPED).text


@pytest.mark.parametrize("state", [JobState.DONE, JobState.STOPPED, JobState.FAILED, JobState.LOST])
def test_a_job_that_does_not_run_has_no_time_left(state):
    assert "left" not in draw(state=state).text


def test_a_job_that_is_done_says_how_long_it_took():
    assert "Done, took 2 min 5 s" in draw(state=JobState.DONE).text
    assert "took" not in draw(state=JobState.DONE, seconds=None).text
    assert "took" not in draw(state=JobState.STOPPED).text


def test_a_job_that_is_done_no_longer_says_what_it_was_at_but_where_it_ended_early():
    assert "judging" not in draw(state=JobState.DONE, progress=Progress(4, 4, "judging")).text
    early = draw(state=JobState.DONE, progress=Progress(3, 4, "no better for 10 epochs"))
    assert "75% · no better for 10 epochs" in early.text


def test_a_failed_job_shows_the_message_and_not_the_traceback():
    text = draw(state=JobState.FAILED, error="No image at x.png.\n\nTraceback (most").text
    assert "No image at x.png." in text
    assert "Traceback" not in text


def test_a_failed_job_is_not_drawn_as_if_all_of_it_were_done():
    page = draw(state=JobState.FAILED, progress=Progress(6, 6, "tried"), error="No picture.")
    assert "100%" not in page.text
    assert "progressbar" not in str(page.tags)
    assert draw(state=JobState.FAILED, progress=Progress(3, 6, "tried")).bar() == "50"


@pytest.mark.parametrize("state", JobState)
def test_nothing_a_person_wrote_becomes_html(state):
    evil = "<script>alert(1)</script>"
    page = draw(title=evil, progress=Progress(1, 2, evil), error=evil, state=state)
    assert "script" not in [tag for tag, _ in page.tags]
    assert evil in page.text


@pytest.mark.parametrize(
    ("progress", "share"), [(Progress(0, 0), "0"), (Progress(9, 4), "100"), (Progress(4, 4), "100")]
)
def test_the_bar_stays_between_nothing_and_all(progress, share):
    assert draw(progress=progress).bar() == share


def test_before_the_first_report_there_is_no_bar_but_a_word_on_why():
    page = draw(progress=None)
    assert "progressbar" not in str(page.tags)
    assert "Running; it has not got to its first step yet" in page.text
    assert "first step" not in draw().text
    assert "Stopping" in draw(progress=None, stopping=True).text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((-3, "0 s"), (0.2, "0 s"), (59.6, "1 min 0 s"), (125, "2 min 5 s")),
        *((7322, "2 h 2 min"), (47.9 * 3600, "47 h 54 min"), (4_268_900, "49 days")),
    ],
)
def test_time_is_told_the_way_people_do(seconds, words):
    assert words_for_seconds(seconds) == words


def test_no_job_shows_nothing():
    updates = jobpanel.show(None)
    assert updates[0] == ""
    assert visible(updates) == (False, False, False, False)


def test_buttons_and_timer_follow_the_state(job):
    assert visible(jobpanel.show(job)) == (True, True, True, True)  # queued
    write_json(job.folder / "pid.json", owner_now(os.getpid()))
    assert visible(jobpanel.show(job)) == (True, False, True, True)  # running
    write_json(job.folder / "pid.json", {**owner_now(os.getpid()), "started": 0.0})
    assert visible(jobpanel.show(job)) == (False, True, True, False)  # lost
    (job.folder / "error.txt").write_text("bad\n\nTraceback")
    assert visible(jobpanel.show(job)) == (False, True, True, False)  # failed
    write_json(job.folder / "result.json", {})
    assert visible(jobpanel.show(job)) == (False, False, True, False)  # done


def test_a_job_that_is_to_stop_cannot_be_cancelled_again(job):
    assert jobpanel.show(job)[1].interactive
    write_json(job.folder / "pid.json", owner_now(os.getpid()))
    jobs.request_stop(job)
    stop = jobpanel.show(job)[1]
    assert (stop.visible, stop.interactive) == (True, False)


def test_an_id_of_a_folder_that_has_gone_is_no_job(job, tmp_path):
    assert jobpanel.find(tmp_path, job.id) == job
    assert jobpanel.find(tmp_path, "gone") is None
    assert jobpanel.find(tmp_path, "../" + tmp_path.name) is None
    assert jobpanel.find(tmp_path, None) is None


def test_errors_reach_the_page_escaped():
    error = JobError("<b>broken</b>")
    assert "&lt;b&gt;broken&lt;/b&gt;" in alert_html(error)


@pytest.mark.parametrize("state", [JobState.STOPPED, JobState.LOST])
def test_resume_is_named_where_its_button_stands_and_nowhere_else(state, job):
    assert "Resume" not in draw(state=state).text
    assert jobpanel.RESUMES in draw(state=state, resumes=jobpanel.RESUMES).text
    if state is JobState.STOPPED:
        jobs.request_stop(job)
        status, _, resume, *_ = jobpanel.show(job)
        assert jobpanel.RESUMES in status
        assert resume.visible


def test_the_panel_and_what_is_drawn_beside_it_get_one_value_each(job, tmp_path):
    with gr.Blocks() as page:
        beside = gr.HTML()
        ran = jobpanel.Jobs("Job", "x", tmp_path, "test")
        ran.follow(lambda job: [job.title if job else "none"], [beside])
    look, stop, resume, _, hear = (fn.fn for fn in page.fns.values())
    assert len(look(job.id)) == len(ran.panel) + 1
    assert look(job.id)[-1] == "A job"
    assert look("gone")[-1] == "none"
    assert "spec.json does not exist." in stop("gone")[0]
    write_json(job.folder / "result.json", {})
    told = resume(job.id)
    assert told[0].startswith('<div role="alert"')
    assert "nothing to resume" in told[0]
    assert told[1:][-1] == "A job"
    outputs = [len(fn.outputs) for fn in page.fns.values()]
    assert outputs == [*[len(ran.panel) + 1] * 4, len(ran.panel) + 2]
    assert len(hear(job.id)) == len(hear(None)) == len(ran.panel) + 2
    assert all(fn.api_visibility == "private" for fn in page.fns.values())


def test_a_list_of_jobs_begins_one_or_says_why_not(tmp_path):
    def make(title):
        if not title:
            raise JobError("a <title> is needed")
        return jobs.create(tmp_path, kind="test", title=title)

    with gr.Blocks() as blocks:
        name, trouble, drawn, opened = gr.Textbox(), gr.HTML(), gr.HTML(), gr.HTML()
        ran = jobpanel.Jobs("Job", "x", tmp_path, "test")
        outputs = ran.follow(
            lambda job: ["drawn"],
            [drawn],
            opened=lambda job: [job.title if job else ""],
            opened_outputs=[opened],
        )
        begun = [(name, lambda title: f"{title} 2")]
        ran.begin_with(gr.Button(), [name], trouble, make, begun=begun)
    (begin,) = (fn for fn in blocks.fns.values() if fn.fn.__name__ == "start")
    assert list(begin.outputs) == [trouble, name, *outputs]
    assert ran.load()[-2:] == ["drawn", ""]
    assert len(ran.load()) == len(outputs)

    said, *others = begin.fn("")
    assert "a &lt;title&gt; is needed" in said
    assert others == [gr.skip()] * (1 + len(outputs))
    said, then, chosen, *shown = begin.fn("One")
    (made,) = jobs.list_jobs(tmp_path, "test")
    assert (said, then, chosen.value) == ("", "One 2", made.id)
    assert shown[-2:] == ["drawn", "One"]
    assert 1 + len(shown) == len(outputs)


def test_what_runs_is_shown_before_what_has_ended_since(tmp_path, monkeypatch):
    runs, ended = (jobs.create(tmp_path, kind="test", title=name) for name in "ab")
    state = {runs.id: JobState.RUNNING, ended.id: JobState.DONE}
    monkeypatch.setattr(jobs, "state", lambda job: state[job.id])
    assert jobpanel.newest(tmp_path, "test") == runs.id
    state[runs.id] = JobState.FAILED
    assert jobpanel.newest(tmp_path, "test") == ended.id
    assert jobpanel.newest(tmp_path, "other") is None
