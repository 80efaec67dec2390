"""Studies are stored whole, with a slot for every vote they need."""

from collections import Counter
from datetime import UTC, datetime

from annotation.design.study_plan import Original, Reconstruction, plan_study
from annotation.domain import StudyStatus
from annotation.spec import StudySpec, Task
from annotation.store import engine, studies
from annotation.store.tables import EventRow, SlotRow

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def plan_of(n, k):
    return plan_study(
        StudySpec(name="big", task=Task.RECOGNITION, votes_per_item=k),
        dataset="symbols",
        classes=("cat", "cow"),
        originals=[Original(image_id="0", class_name="cat", sha256="0" * 64)],
        reconstructions=[
            Reconstruction(
                image_id="0", class_name="cat", model=str(m), attack="a", sha256="", error=0.0
            )
            for m in range(n)
        ],
        n_failed=0,
    )


def test_a_study_larger_than_a_batch_is_whole(store):
    n = engine.BATCH // 2 + 7
    made = store.write(lambda tx: studies.add_study(tx, plan_of(n, 3), NOW))
    slots = store.read(lambda tx: tx.query(SlotRow.stimulus_id, SlotRow.k, SlotRow.salt).all())
    assert made.n_items == n
    assert set(Counter(slot.stimulus_id for slot in slots).values()) == {3}
    assert len(slots) == 3 * n
    assert len({(slot.stimulus_id, slot.salt) for slot in slots}) == n


def test_a_status_is_told_when_it_changes(store):
    made = store.write(lambda tx: studies.add_study(tx, plan_of(1, 1), NOW))
    for status in (StudyStatus.PAUSED, StudyStatus.PAUSED, StudyStatus.CLOSED):
        store.write(lambda tx, s=status: studies.put_status(tx, made.id, s, NOW))
    events = store.read(lambda tx: tx.query(EventRow).filter_by(kind="status").all())
    assert [event.data for event in events] == [
        {"before": "running", "after": "paused"},
        {"before": "paused", "after": "closed"},
    ]
