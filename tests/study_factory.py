"""Small reconstruction sets and fresh databases for tests of the human study."""

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import psycopg
from helpers import limit
from PIL import Image
from programs import POSTGRES, skip_without
from sqlalchemy import Engine, event, make_url
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache

from annotation.design import flow
from annotation.design.assignment import PRIME, Permutation
from annotation.domain import Annotator, Answer, SignedIn, Study, VoteReceipt
from annotation.errors import NameTakenError
from annotation.formats.study_data import StudyData
from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.study.create import Examination, examine, keep_study
from annotation.study.exports import read_study
from annotation.study.labelling import come_back, join, next_items, vote
from annotation.study.participant_flow import spec_of
from annotation.study.participants import new_link
from annotation.tasks.kind import Question
from semsim.base.sets.set_format import COLUMNS

CLASSES = ("anchor", "Cat", "chess_knight", "cow", "heart", "star", "sun", "umbrella")
# A classifier that is sure of the true class on originals and rather sure on reconstructions.
SURE = {
    "original": {"TRUE": 0.9, "heart": 0.1},
    "reconstruction": {"TRUE": 0.8, "heart": 0.2},
}
# Of two target models, one that learned and one that guesses: how good they were on their test.
GOOD, GUESSING = (
    {
        **{"accuracy": accuracy, "n_test": 470, "n_classes": 47, "chance": 1 / 47},
        "at_chance": at_chance,
    }
    for accuracy, at_chance in ((0.71, False), (0.02, True))
)
STRICT = (0.3, 0.5, 0.7, 0.9, 0.95)  # three of five name what they see with a probability of 0.8
DATABASES = ("sqlite", "postgresql")
SMALL_MODELS = ("resnet20-4", "convnet8")
START = datetime(2026, 1, 1, tzinfo=UTC)


def joined(store: Store, study: Study, *names: str) -> list[Annotator]:
    """Those people, in the study."""
    return [join(store, study.token, name).annotator for name in names]


def arrived(store: Store, study: Study, name: str) -> SignedIn:
    """Somebody of that name, signed in: who is there already comes by a link of their own."""
    try:
        return join(store, study.token, name)
    except NameTakenError:
        return come_back(store, new_link(store, study.id, name, START))


def answer_to(item: str, answer: str = "none", **more: Any) -> Answer:
    """An answer nobody has sent before."""
    return Answer(id=str(uuid.uuid4()), item=item, answer=answer, **more)


def answer_all(
    store: Store, person: Annotator, answer: str = "none", n: int = 100, now: datetime = START
) -> list[VoteReceipt]:
    """The receipts of up to `n` items, which somebody gets and answers in one go."""
    items = next_items(store, person, "tab", n, now)
    return [vote(store, person, answer_to(item.item, answer), now) for item in items]


def let_answer(
    store: Store,
    images: Path,
    study: Study,
    say: Callable[[Any], str],
    names: Sequence[str] = ("Anna", "Ben", "Cleo"),
) -> StudyData:
    """Let people answer every item of a study with `say(stimulus)`; returns its data."""
    known = read_study(store, study.id, images).stimuli.set_index("item")
    for person in joined(store, study, *names):
        for item in next_items(store, person, "tab", 100, START):
            said = answer_to(item.item, say(known.loc[item.item]), rt_ms=1500.0)
            vote(store, person, said, START)
    return read_study(store, study.id, images)


def questions_for(store: Store, annotator: Annotator) -> tuple[Question, ...]:
    """The questions on the instructions that `annotator` is asked."""
    spec = spec_of(store, annotator)
    return flow.questions(spec.kind, spec.seed, annotator.id)


def _share_sql() -> None:
    """Let every store take the SQL that another on such a database had made of a statement.

    SQLAlchemy keeps it by engine, and most tests open one: to make it anew took a fifth of a test.
    """
    made: LRUCache[Any, Any] = LRUCache(2_000)
    begin = Engine.__init__

    def sharing(engine: Engine, *given: Any, **named: Any) -> None:
        begin(engine, *given, **named)
        engine._compiled_cache = made

    patched: Any = (Engine, DefaultDialect)
    patched[0].__init__ = sharing
    patched[1].__eq__ = lambda one, other: type(one) is type(other)
    patched[1].__hash__ = lambda one: hash(type(one))


_share_sql()


@contextmanager
def fresh_database(kind: str, folder: Path) -> Iterator[str]:
    """The address of a database that holds the tables of a new store and nothing else."""
    with empty_database(kind, folder) as url:
        if kind == "sqlite":
            (folder / "studies.db").write_bytes(_tables())
        else:
            with psycopg.connect(url.replace("+psycopg", "")) as connection:
                connection.execute(_statements())
        yield url


# To migrate a database anew for every test would take minutes.
@cache
def _tables() -> bytes:
    """The file that a new store makes."""
    with TemporaryDirectory() as folder:
        Store(f"sqlite:///{folder}/studies.db").close()
        return Path(folder, "studies.db").read_bytes()


@cache
def _statements() -> str:
    """What a new store says to PostgreSQL, without its questions."""
    said: list[str] = []

    def note(_: Any, cursor: Any, statement: str, values: Any, *rest: Any) -> None:
        if not statement.lstrip().startswith("SELECT"):
            said.append(psycopg.ClientCursor(cursor.connection).mogrify(statement, values))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with empty_database("postgresql", Path()) as url:
            Store(url).close()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    return ";".join(said)


@contextmanager
def empty_database(kind: str, folder: Path) -> Iterator[str]:
    """The address of a database without tables: a new file, or a schema dropped afterwards."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'studies.db'}"
        return
    with ExitStack() as stack:
        try:
            url = stack.enter_context(schema_on(POSTGRES))
        except psycopg.OperationalError:
            skip_without("a PostgreSQL server")
        yield url


@contextmanager
def schema_on(server: str, prefix: str = "t") -> Iterator[str]:
    """The address of a schema of its own on a PostgreSQL, which is dropped afterwards."""
    schema = f"{prefix}{uuid.uuid4().hex}"
    address = make_url(server).update_query_dict({"options": f"-csearch_path={schema}"})
    plain = server.replace("+psycopg", "")
    with psycopg.connect(plain, autocommit=True, connect_timeout=round(limit(5))) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            yield address.render_as_string(hide_password=False)
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


def picture(seed: int, size: int = 6) -> np.ndarray:
    """A small random colour image, (size, size, 3) uint8."""
    return np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)


def save_png(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def write_set(
    folder: Path,
    *,
    model: str = "resnet20-4/none",
    labels: Sequence[str] = ("Cat", "cow", "star", "sun"),
    classes: Sequence[str] = CLASSES,
    failed: Sequence[int] = (),
    noise: int = 40,
    dataset: str = "symbols",
    mirrored: Sequence[int] | None = None,
    probabilities: dict[str, dict[str, float]] | None = None,
) -> Path:
    """A set whose i-th original shows `labels[i]`; originals are the same for every model.

    `mirrored` images were attacked in mirror writing; with None, what was attacked is not known.
    `probabilities`, by subject ("original" or "reconstruction") and class of the image shown,
    become predictions.parquet: class → probability; in jury.parquet all jurors see the same, with
    the thresholds `STRICT`.
    """
    rows = []
    for index, label in enumerate(labels):
        image_id = f"image-{index:03d}"
        original = picture(index)
        spread = np.random.default_rng([index, crc32(model.encode())]).integers(
            -noise, noise + 1, (6, 6, 3)
        )
        blurred = np.clip(original.astype(int) + spread, 0, 255).astype(np.uint8)
        save_png(folder / f"originals/{image_id}.png", original)
        if index not in failed:
            save_png(folder / f"reconstructions/{image_id}.png", blurred)
        rows.append(_manifest_row(image_id, label, classes, ok=index not in failed))
        if mirrored is not None:
            rows[-1]["attacked"] = rows[-1]["original"]
        if index in (mirrored or ()):
            rows[-1]["attacked"] = f"attacked/{image_id}.png"
            save_png(folder / f"attacked/{image_id}.png", original[:, ::-1])
    # All columns of a set; what this one does not know is null.
    table = pd.DataFrame(rows).reindex(columns=COLUMNS).astype({"attacked": object})
    table.to_parquet(folder / "manifest.parquet", index=False)
    write_run(folder, model=model, classes=classes, dataset=dataset)
    if probabilities is not None:
        predictions = _predictions(rows, probabilities)
        predictions.to_parquet(folder / "predictions.parquet", index=False)
        _jury(predictions).to_parquet(folder / "jury.parquet", index=False)
    return folder


def small_sets(folder: Path) -> list[Path]:
    """The sets of every `small_study`, written into `folder`."""
    return [write_set(folder / model, model=model, probabilities=SURE) for model in SMALL_MODELS]


@cache
def _small_sets() -> TemporaryDirectory[str]:
    """The sets of every `small_study`, written once in a process."""
    folder = TemporaryDirectory()
    small_sets(Path(folder.name))
    return folder


_EXAMINED: dict[str, Examination] = {}


def kept(store: Store, spec: StudySpec, sets: Sequence[Path], images: Path) -> Study:
    """A study of `spec`, as `create_study` makes it, over sets that a process reads but once.

    Nothing may have changed in the sets since it last was asked for such a study.
    """
    asked = repr((asdict(spec), sets))
    if asked not in _EXAMINED:
        _EXAMINED[asked] = examine(spec, sets)
    return keep_study(store, _EXAMINED[asked], images)


def small_study(
    store: Store,
    folder: Path,
    name: str = "symbols",
    task: Task = Task.RECOGNITION,
    **spec: Any,
) -> Study:
    """A study over two small sets of four images, kept in `folder`; `spec` as in `StudySpec`."""
    sets = [Path(_small_sets().name) / model for model in SMALL_MODELS]
    return kept(store, StudySpec(name=name, task=task, **spec), sets, folder / "images")


def of_convnet8(stimulus: Any) -> str:
    """What somebody answers who recognises all of one model of a `small_study`, none of another."""
    return str(stimulus["class_name"]) if stimulus["model"] == "convnet8" else "none"


def write_run(
    folder: Path,
    *,
    model: str = "resnet20-4/none",
    classes: Sequence[str] = CLASSES,
    dataset: str = "symbols",
    **changes: Any,
) -> None:
    run = {
        "format": "semsim-reconstruction-set/1",
        "name": folder.name,
        "model": model,
        "dataset": {"name": dataset, "classes": list(classes), "size": [6, 6]},
        "attack": {"name": "invgrad", "iterations": 10},
        "status": "ok",
        **changes,
    }
    (folder / "run.json").write_text(json.dumps(run))


def _manifest_row(image_id: str, label: str, classes: Sequence[str], *, ok: bool) -> dict[str, Any]:
    return {
        "image_id": image_id,
        "class_id": list(classes).index(label) if label in classes else -1,
        "class_name": label,
        "original": f"originals/{image_id}.png",
        "reconstruction": f"reconstructions/{image_id}.png" if ok else None,
        "status": "ok" if ok else "failed",
        "error": "" if ok else "diverged",
        "objective": 0.1,
        "shift_x": 0,
        "shift_y": 0,
        "flipped": False,
    }


def _predictions(
    rows: list[dict[str, Any]], probabilities: dict[str, dict[str, float]]
) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "image_id": row["image_id"],
                "subject": subject,
                "class_name": row["class_name"] if name == "TRUE" else name,
                "log_probability": float(np.log(probability)) if probability else -np.inf,
            }
            for row in rows
            for subject, of_class in probabilities.items()
            for name, probability in of_class.items()
            if row["status"] == "ok" or subject == "original"
        ],
        columns=["image_id", "subject", "class_name", "log_probability"],
    )


def _jury(predictions: pd.DataFrame) -> pd.DataFrame:
    jurors = [
        predictions.assign(juror=f"Simulated {number}", threshold=threshold)
        for number, threshold in enumerate(STRICT, start=1)
    ]
    return pd.concat(jurors, ignore_index=True)


def rank(order: Permutation, salt: int) -> int:
    """Return the place of an item in an annotator's order, as the database sorts by it."""
    return (order.factor * salt + order.offset) % PRIME
