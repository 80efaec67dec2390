"""In which order pages about votes open on studies, on each database."""

from datetime import timedelta

from study_factory import START, answer_all, joined, small_study

from annotation.study.labelling import voted
from annotation.study.participants import exclude
from annotation.study.simulate import simulate


def test_much_before_little_people_before_programs_late_before_early(store, tmp_path):
    """A study of eight items has enough where it has eight votes, of whomever and on what."""
    made = {
        name: small_study(store, tmp_path / name, name=name, simulated=name == "simulated, last")
        for name in ("early", "late", "tried", "simulated, last", "silent", "taken back")
    }
    for hours, name in enumerate(("early", "late", "tried", "taken back")):
        (anna,) = joined(store, made[name], "Anna")
        answer_all(store, anna, n=2 if name == "tried" else 8, now=START + timedelta(hours=hours))
    simulate(store, made["simulated, last"].id, 2)
    exclude(store, made["taken back"].id, "Anna", START)
    expected = ["late", "early", "simulated, last", "tried"]
    assert voted(store) == [made[name].id for name in expected]
