"""`semsim-studio baseline-check` counts what the pages count."""

import json
from pathlib import Path

import numpy as np
from made_splits import written
from PIL import Image
from typer.testing import CliRunner

from semsim.base.sets.reader import read_set
from semsim.base.sets.set_format import RUN
from semsim.base.threat import ThreatModel
from semsim.cli.main import app
from semsim.lab import sets

RUNNER = CliRunner()


def test_sets_below_a_folder_are_judged_as_the_pages_judge_them(tmp_path):
    """Of the one nothing comes back; of the other a negative does, in both words and JSON."""
    folders = [written(tmp_path, name) for name in ("hidden", "negative")]
    for row in read_set(folders[1]).pairs.to_dict("records"):
        original = np.asarray(Image.open(row["original"]))
        Image.fromarray(255 - original).save(Path(row["reconstruction"]))
    run = json.loads((folders[1] / RUN).read_text())
    threat = {"threat": ThreatModel(changes_model=True).record()}
    (folders[1] / RUN).write_text(json.dumps(run | threat))
    done = RUNNER.invoke(app, ["baseline-check", str(tmp_path), "--json"])
    assert done.exit_code == 0
    rows = json.loads(done.stdout)["sets"]
    assert [row["folder"] for row in rows] == [str(folder) for folder in folders]
    for row, folder in zip(rows, folders, strict=True):
        shown = sets.shown_in(folder)
        assert (row["pictures"], row["clearer"]) == (2, sum(one.clearer for one in shown))
    told = [(row["nearer"], row["told_apart"], row["comes_back"]) for row in rows]
    assert told == [(0, 0, False), (0, 2, True)]
    assert [row["attacker"] for row in rows] == ["", "F"]
    text = RUNNER.invoke(app, ["baseline-check", *map(str, folders)]).stdout
    assert "attacker" in text.splitlines()[0]
    assert "above the no-attack baseline" in text
    assert [line.split()[-1] for line in text.splitlines()[1:3]] == ["no", "yes"]
