"""Whatever goes wrong is an `AnnotationError`, which is what pages and commands catch."""

import pytest

from annotation import errors


def test_one_root():
    mine = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in mine if kind.__module__ == errors.__name__]
    assert len(kinds) > 5
    assert all(issubclass(kind, errors.AnnotationError) for kind in kinds)
    assert all(kind.__doc__ for kind in kinds)


def test_an_error_is_told_as_the_callers_own():
    @errors.told_as(ValueError)
    def fails():
        raise errors.StudyError("what to do")

    for _ in range(2):  # a decorated function may be called again
        with pytest.raises(ValueError, match="what to do"):
            fails()
