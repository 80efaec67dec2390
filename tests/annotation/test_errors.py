"""Whatever goes wrong is an `AnnotationError`, which is what pages and commands catch."""

from annotation import errors


def test_one_root():
    mine = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in mine if kind.__module__ == errors.__name__]
    assert len(kinds) > 5
    assert all(issubclass(kind, errors.AnnotationError) for kind in kinds)
    assert all(kind.__doc__ for kind in kinds)
