"""What is not imported before it is needed: by the modules of a fresh process, not by a clock."""

import json
import os
import subprocess
import sys

import pytest
from helpers import ROOT
from made_judged import judged_labels, judged_votes
from typer.main import get_command

from annotation.cli.main import app as human
from semsim.cli.main import app as science

HALVES = {"annotation": human, "semsim": science}
# What no list of commands needs, and what each costs most.
HEAVY = {"torch", "torchvision", "numpy", "pandas", "scipy", "skimage", "sklearn", "matplotlib"}
HEAVY |= {"pyarrow", "PIL", "sqlalchemy", "alembic", "pydantic", "fastapi", "gradio", "plotly"}

RUN = """
import json, runpy, sys
sys.argv = {argv!r}
try:
    runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported_by(module: str, *arguments: str) -> set[str]:
    """The modules that `python -m module arguments` has imported when it ends."""
    code = RUN.format(argv=[module, *arguments], module=module)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr))


@pytest.mark.parametrize("half", HALVES)
def test_the_list_of_commands_imports_none_of_them(half):
    modules = imported_by(half, "--help")
    assert not modules & HEAVY
    inside = {name for name in modules if name.startswith(f"{half}.cli.")}
    assert inside <= {f"{half}.cli.main"}


@pytest.mark.parametrize("half", HALVES)
def test_the_list_says_what_the_commands_say_of_themselves(half):
    group = get_command(HALVES[half])
    for name, one in group.commands.items():
        said = group.get_command(None, name).help.split("\n\n")[0]
        assert one.help == " ".join(said.split())


DOOR = """
import json, sys
from semsim.cli.studio import main
sys.argv[1:] = {words!r}
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "absent"),
    [(["--help"], HEAVY), (["score", "--help"], {"gradio", "sqlalchemy", "fastapi", "uvicorn"})],
    ids=["list", "score"],
)
def test_the_door_imports_no_more_than_the_half_behind_it(words, absent):
    code = DOOR.format(words=words)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "Usage: semsim-studio" in done.stdout
    assert not set(json.loads(done.stderr)) & absent


def test_the_studio_says_what_it_does_before_it_imports_its_pages():
    code = "import sys, json, app; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not set(json.loads(done.stdout)) & (HEAVY - {"uvicorn"})


SERVED = """
if __name__ == "__main__":  # what is computed apart imports this file anew
    import json, sys
    from argparse import Namespace
    from dataclasses import replace
    from inspect import signature
    from pathlib import Path

    opened = []
    sys.addaudithook(lambda event, told: event == "open" and opened.append(str(told[0])))
    import app, pandas
    from annotation.store import Store
    from semsim.base.pages_library import gr
    from semsim.campaign.plan import Campaign
    from semsim.base.errors import SettingsError
    from semsim.systems.federated.settings import FederatedOrder
    from semsim.grid.subprocess_worker import apart
    from semsim.base.jobs import folders as jobs
    from semsim.ui import ScienceContext, StudyChoice, learn, pages
    from semsim.ui.reconstruct_sets import kept_plan

    data = Path(sys.argv[1])
    where = {"data_dir": data, "images": data, "checkpoints": data, "device": "cpu"}
    store = Store(f"sqlite:///{data / 'studies.db'}")
    app.create_app(store, Namespace(host="127.0.0.1", local=True, **where))
    labels = lambda study: pandas.read_parquet(data / "labels.parquet")
    votes = lambda study: pandas.read_parquet(data / "votes.parquet")
    context = ScienceContext(
        data=data, checkpoints=data, studies=list, labels=labels, votes=votes, device="cpu"
    )
    for _, _, page in pages.PAGES:
        with gr.Blocks():
            loads = page.render(context)
        for load, _ in loads:
            load(*[Namespace(query_params={}) for _ in signature(load).parameters])
    data_set = "symbols:train_per_class=1,test_per_class=1"
    found = kept_plan(Campaign(name="made", datasets=(data_set,), images=2))
    told = ""
    try:
        queue = "semsim.systems.federated.comparison:queue_comparison"
        apart(queue, FederatedOrder(lr=-1.0), data)
    except SettingsError as error:
        told = str(error)
    jobs.start = print  # what a job does is its own process's
    voted = replace(context, studies=lambda: [StudyChoice("s1", "Demo", True)])
    assert "triplet takes" in learn.describe_split(voted, ["s1"], "original", 0.25, "triplet")
    job = learn.start_study(voted, ["s1"], "original", 0.25, "margin", "triplet", ["1"], 1)
    print(json.dumps([len(found.sets), len(found.pictures[data_set].pixels), told, job.title]))
    print(json.dumps([name for name in opened if "gradio" in name and name.endswith(".pyi")]))
    print(json.dumps(sorted(sys.modules)))
"""


def test_the_server_computes_with_torch_in_other_processes_only(tmp_path):
    labels = judged_labels(tmp_path / "toy")
    labels.to_parquet(tmp_path / "labels.parquet")
    judged_votes(labels).to_parquet(tmp_path / "votes.parquet")
    script = tmp_path / "served.py"
    script.write_text(SERVED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    answered, stubs, modules = map(json.loads, done.stdout.splitlines()[-3:])
    title = "Study of SemSim: margin on simulated votes"
    assert answered == [4, 2, "lr must be above 0; got -1.0.", title]
    assert stubs == []
    assert not set(modules) & {"torch", "torchvision", "sklearn", "distributed", "scipy.stats"}
