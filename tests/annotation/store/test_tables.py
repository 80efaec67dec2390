"""The tables refuse states that code should never make."""

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from annotation.store.tables import SlotRow, Table


@pytest.mark.parametrize(
    "values",
    [{"state": "lost"}, {"state": "done"}, {"state": "leased"}, {"annotator_id": "nobody"}],
)
def test_slots_cannot_contradict_themselves(store, make_study, values):
    make_study()
    with pytest.raises(IntegrityError):
        store.write(lambda tx: tx.execute(update(SlotRow).values(**values)))


def test_every_constraint_has_a_name():
    for table in Table.metadata.tables.values():
        assert all(constraint.name for constraint in table.constraints), table.name
