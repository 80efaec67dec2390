"""What the pages of the human study get."""

import pytest
from made_results import NO_IMPORTS
from study_factory import write_set

from annotation.ui import StudyContext


@pytest.fixture
def context(store, images, tmp_path):
    """An empty store, and one reconstruction set to make studies of."""
    folder = write_set(tmp_path / "sets" / "one", model="one")
    return StudyContext(
        store=store, images=images, find_sets=lambda: [("One", folder)], imports=NO_IMPORTS
    )
