"""The panel through which a page watches a job: bar, time left, stop, resume, log; and what runs.

A page that starts jobs of a kind lays a list of them and the panel out with `Jobs`. Nothing is kept
in the page: a reload, a second browser and a restarted server show the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from semsim.base.errors import JobError, SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.pages_library import BARE, QUIETLY, UNSEEN, gr
from semsim.base.progress import Progress
from semsim.base.words import words_for_seconds
from semsim.lab.markup import alert_html, pieces, rooted
from semsim.systems import JOBS

TICK = 1.0  # seconds between two looks at a live job
_RESUMABLE = {JobState.STOPPED, JobState.FAILED, JobState.LOST, JobState.QUEUED}
_WORDS = {
    JobState.QUEUED: "Waiting to start",
    JobState.RUNNING: "Running",
    JobState.DONE: "Done",
    JobState.FAILED: "Failed",
    JobState.STOPPED: "Stopped.",
    JobState.LOST: "Its process has gone without a word (was the computer restarted?).",
}
# Said where the button stands, of what can be seen to have ended too early.
RESUMES = "Resume goes on from where it was saved."
CUT_OFF = {JobState.STOPPED, JobState.LOST}
# The page below /studio/ that shows a kind of job; of others there is only the command line.
WATCHED = {
    "look": "pictures",
    "import": "pictures",
    "campaign": "reconstruct",
    "dataset": "reconstruct",
    "learn": "train",
    "learn-study": "train",
    "score": "compare",
    "weights": "compare",
    "people": "compare",
    "comparison": "compare?tab=files",
    **{name: name for name in JOBS},
}
_HTML = pieces("job.html", "semsim.ui")


_NEWS = """
let seen = null;
addEventListener('studio:looked', ({ detail }) => {
  if (seen && seen !== detail.news) trigger('news');
  seen = detail.news;
});
"""


def show(job: Job | None) -> list[Any]:
    """New values for the panel of `Jobs`; the timer runs only while the job lives."""
    if job is None:
        hidden = gr.Accordion(visible=False)
        return ["", _button(False), _button(False), hidden, "", gr.Timer(active=False)]
    state = jobs.state(job)
    return [
        JobView.of(job, RESUMES).html,
        gr.Button(visible=state in jobs.LIVE, interactive=not jobs.stop_requested(job)),
        _button(state in _RESUMABLE),
        gr.Accordion(visible=True),
        jobs.log_tail(job),
        gr.Timer(active=state in jobs.LIVE),
    ]


class Jobs:
    """The jobs of one kind on a page: a list to choose from, and the panel of the one chosen.

    Laid out where the caller stands; `elem_id` begins the ids of its parts.

    Attributes:
        root: Folder of jobs.
        news: A part that is not seen; its event of that name comes after something has happened.
    """

    def __init__(self, label: str, elem_id: str, root: Path, kind: str) -> None:
        self.root, self.kind = root, kind
        # Another page may have started one: a value outside the first list is allowed.
        self.chosen = gr.Dropdown(
            [],
            label=label,
            allow_custom_value=True,
            visible=False,
            elem_id=f"{elem_id}-job",
            elem_classes="job-chosen",
        )
        status = gr.HTML(elem_id=f"{elem_id}-status", elem_classes="job-status")
        with gr.Row():
            small: dict[str, Any] = {"visible": False, "scale": 0, "min_width": 120}
            self._stop = gr.Button("Cancel", variant="stop", elem_id=f"{elem_id}-stop", **small)
            self._resume = gr.Button("Resume", elem_id=f"{elem_id}-resume", **small)
        with gr.Accordion("Log", open=False, visible=False, elem_classes="job-details") as details:
            log = gr.Textbox(
                lines=8, max_lines=20, show_label=False, interactive=False, elem_id=f"{elem_id}-log"
            )
        self.timer = gr.Timer(TICK, active=False)
        self.news = gr.HTML("", js_on_load=_NEWS, visible="hidden", **BARE)
        self.panel = [status, self._stop, self._resume, details, log, self.timer]

    def follow(
        self,
        also: Callable[[Job | None], list[Any]],
        also_outputs: Sequence[Any],
        *,
        opened: Callable[[Job | None], list[Any]] = lambda job: [],
        opened_outputs: Sequence[Any] = (),
    ) -> list[Any]:
        """Draw the chosen job; returns what `load` has a value for, in its order.

        Args:
            also: What else to draw of it on every look, one value for each of `also_outputs`.
            opened: What is drawn, for `opened_outputs`, when a job is chosen and not on every look.
        """

        def look(chosen: str | None) -> list[Any]:
            job = find(self.root, chosen)
            try:
                return [*show(job), *also(job)]
            except (SemsimError, LookupError, TypeError, ValueError, AttributeError) as error:
                # What a job left may be damaged, or of another version; the page's rest is not.
                status, *rest = show(job)
                return [unreadable_html(job, error) + status, *rest, *also(None)]

        def act(chosen: str | None, action: Callable[[Job], None]) -> list[Any]:
            try:
                action(jobs.open_job(self.root, chosen or ""))
            except SemsimError as error:
                status, *rest = look(chosen)
                return [alert_html(error) + status, *rest]
            return look(chosen)

        def look_at(job_id: str | None) -> list[Any]:
            return [*look(job_id), *opened(find(self.root, job_id))]

        chosen, drawn = self.chosen, [*self.panel, *also_outputs]
        watched = [*drawn, *opened_outputs]
        self.timer.tick(look, chosen, drawn, **UNSEEN)
        self._stop.click(lambda one: act(one, jobs.request_stop), chosen, drawn, **QUIETLY)
        self._resume.click(lambda one: act(one, jobs.resume), chosen, drawn, **QUIETLY)
        chosen.input(look_at, chosen, watched, **UNSEEN)
        self._look, self.outputs = look_at, [chosen, *watched]

        def hear(job_id: str | None) -> list[Any]:
            if not job_id:
                return self.load()
            kept = [gr.skip() for _ in opened_outputs]
            return [chooser(self.root, self.kind, job_id), *look(job_id), *kept]

        self.news.news(hear, chosen, self.outputs, **UNSEEN)
        return self.outputs

    def load(self, job_id: str | None = None) -> list[Any]:
        """The job of this id, else the newest one, chosen and drawn."""
        return self._shown(job_id or newest(self.root, self.kind))

    def begin_with(
        self,
        button: gr.Button,
        inputs: Sequence[Any],
        trouble: gr.HTML,
        start_job: Callable[..., Job],
        *,
        js: str | None = None,
        begun: Sequence[tuple[Any, Any]] = (),
    ) -> None:
        """Let `button` start the job that the inputs mean, or say in `trouble` why it cannot.

        Args:
            js: What makes the inputs in the browser.
            begun: Components and what they become then, or what returns it, of the inputs.
        """
        changed = [component for component, _ in begun]

        def start(*values: Any) -> list[Any]:
            try:
                job = start_job(*values)
                then = [value(*values) if callable(value) else value for _, value in begun]
            except SemsimError as error:
                return [alert_html(error), *(gr.skip() for _ in [*changed, *self.outputs])]
            return ["", *then, *self._shown(job.id)]

        button.click(start, list(inputs), [trouble, *changed, *self.outputs], js=js, **QUIETLY)

    def _shown(self, job_id: str | None) -> list[Any]:
        return [chooser(self.root, self.kind, job_id), *self._look(job_id)]


def newest(root: Path, kind: str) -> str | None:
    """The id of the job of this kind to show first, see `foremost`."""
    job = jobs.foremost(root, kind)
    return None if job is None else job.id


def chooser(root: Path, kind: str, value: str | None) -> Any:
    """A list to choose a job of this kind from, newest first, with the time it was made (UTC)."""
    found = jobs.list_jobs(root, kind)
    offered = [(f"{job.title} · {when(job.created)} UTC", job.id) for job in found]
    return gr.Dropdown(choices=offered, value=value, visible=bool(offered))


def when(created: str) -> str:
    """A time in ISO 8601 as "2026-01-31 14:05"."""
    return created[:16].replace("T", " ")


def find(root: Path, job_id: str | None) -> Job | None:
    """The job with this id, or None where none is chosen or its folder was removed."""
    if not job_id:
        return None
    try:
        return jobs.open_job(root, job_id)
    except JobError:  # a page left open outlives a folder that somebody deleted
        return None


def unreadable_html(job: Job | None, error: Exception) -> str:
    """That what a job has left cannot be shown, and why."""
    where = "" if job is None else f" ({job.folder})"
    what = str(error) if isinstance(error, SemsimError) else f"{type(error).__name__}: {error}"
    return alert_html(
        JobError(
            f"What this job has left{where} cannot be shown: {what} It is damaged or of another "
            "version. Start the job again, or remove its folder."
        )
    )


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A job as pages show it.

    Attributes:
        seconds: Those left, or, of a job that is done, those it took; None where unknown.
        error: What went wrong, then the traceback.
        resumes: What the button beside it does where the job was cut off; "" without such a button.
    """

    title: str
    state: JobState
    stopping: bool
    progress: Progress | None
    seconds: float | None
    error: str
    id: str = ""
    resumes: str = ""

    @classmethod
    def of(cls, job: Job, resumes: str = "") -> Self:
        """Read a job's folder."""
        state = jobs.state(job)
        return cls(
            id=job.id,
            title=job.title,
            state=state,
            stopping=jobs.stop_requested(job),
            progress=jobs.latest(job),
            seconds=jobs.seconds_taken(job) if state is JobState.DONE else jobs.eta_seconds(job),
            error=jobs.error_text(job),
            resumes=resumes,
        )

    @property
    def live(self) -> bool:
        """Return whether it waits or runs."""
        return self.state in jobs.LIVE

    @property
    def words(self) -> str:
        """Return the state in words."""
        if self.state is JobState.RUNNING and self.stopping:
            return "Stopping after the present step"
        words = _WORDS[self.state]
        return f"{words} {self.resumes}".strip() if self.state in CUT_OFF else words

    @property
    def done(self) -> float:
        """Return the share that is done, 0 to 1."""
        one = self.progress
        return min(1.0, one.done / one.total) if one is not None and one.total > 0 else 0.0

    @property
    def share(self) -> int:
        """Return the share that is done, in per cent."""
        return round(100 * self.done)

    @property
    def left(self) -> str:
        """Return the time left, "" of a job that does not run or has no pace."""
        known = self.state is JobState.RUNNING and self.seconds is not None
        return f"about {words_for_seconds(self.seconds or 0)} left" if known else ""

    @property
    def note(self) -> str:
        """Return what it is at, and the time left."""
        at = "" if self.progress is None else self.progress.note
        return " · ".join(filter(None, (at, self.left)))

    @property
    def failed(self) -> str:
        """Return what went wrong; the traceback below it is for error.txt."""
        return self.error.split("\n\n", 1)[0] if self.state is JobState.FAILED else ""

    @property
    def html(self) -> str:
        """Return title, bar, note and time left, or what became of the job; text is escaped."""
        words, share, note = self.words, None, ""
        if self.state is JobState.DONE and self.seconds is not None:
            words = f"{words}, took {words_for_seconds(self.seconds)}"
        if self.state is JobState.RUNNING and self.progress is None and not self.stopping:
            words = f"{words}; it has not got to its first step yet"
        # The last step of one that failed may be done, and then nothing came of it.
        if self.progress is not None and not (self.state is JobState.FAILED and self.done == 1):
            share, note = self.share, " · ".join(filter(None, (f"{self.share}%", self.note)))
            # What a whole job was at last is over; one that ended early says where.
            note = "" if self.state is JobState.DONE and share == 100 else note
        status = _HTML.status(self.state.value, self.title, words, share, note, self.failed)
        return str(status)


def last_words(root: Path, kind: str, asked: Mapping[str, Any], called: str) -> str:
    """Return what the last job like this took here, as a sentence; "" where none is done.

    Args:
        asked: See `last_seconds`.
        called: What it is, with all of that in words.
    """
    seconds = jobs.last_seconds(root, kind, asked)
    if seconds is None:
        return ""
    return f"The last {called} took {words_for_seconds(seconds)} on this machine."


def _button(visible: bool) -> Any:
    return gr.Button(visible=visible)


class Live(NamedTuple):
    """A job that waits or runs: its title, the share that is done, time left, where one sees it."""

    words: str
    share: float
    left: str
    address: str


def running(root: Path) -> list[Live]:
    """The jobs below `root` that wait or run, newest first."""
    return [_live(job) for job in jobs.list_jobs(root) if jobs.state(job) in jobs.LIVE]


def changed(data: Path) -> int:
    """Return a number that is another one once a job or an import has come, gone or ended.

    A job's progress leaves it as it is: the page of that job looks by itself.
    """
    roots = [data / name for name in ("jobs", "runs", "imports", "pictures", "uploads", "scores")]
    found = [*roots, *(one for root in roots for one in root.glob("*"))]
    return sum(_age(one) for one in found)


def _age(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # never there, or gone meanwhile
        return 0


def _live(job: Job) -> Live:
    one = JobView.of(job)
    return Live(one.title, one.done, one.left, rooted(f"/studio/{WATCHED.get(job.kind, '')}"))
