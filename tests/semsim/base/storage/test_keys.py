from dataclasses import dataclass

import pytest

from semsim.base.storage.pieces import key_of


@dataclass(frozen=True)
class Settings:
    a: int = 1
    b: tuple = (1, 2)


def test_a_key_does_not_depend_on_the_order_of_names():
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1}) != key_of({"a": 2, "b": 1})


def test_settings_count_as_their_fields():
    assert key_of(Settings()) == key_of({"b": [1, 2], "a": 1}) != key_of(Settings(a=2))


def test_a_short_key_is_the_start_of_the_long_one():
    assert len(key_of("a")) == 64
    assert key_of("a", 20) == key_of("a")[:20]


def test_what_json_cannot_say_has_no_key():
    with pytest.raises(TypeError):
        key_of({"a": object()})
