"""Passwords are kept salted and hashed."""

from annotation.store.passwords import matches, protect


def test_only_the_right_password_matches():
    salt, digest = protect("sesame")
    assert matches("sesame", salt, digest)
    for wrong in ("Sesame", "", None):
        assert not matches(wrong, salt, digest)


def test_a_password_is_the_same_from_every_keyboard():
    wide, accent = protect("ｓｅｓａｍｅ"), protect("sésame")
    assert matches("sesame", *wide)
    assert matches("se\u0301same", *accent)
    assert not matches("sesame", *accent)


def test_the_same_password_is_stored_differently_each_time():
    assert protect("sesame") != protect("sesame")
    assert "sesame" not in "".join(str(part) for part in protect("sesame"))


def test_no_password_opens_with_anything():
    assert protect(None) == (None, None)
    assert matches("whatever", None, None)
