"""What is public is listed once, imported late, and a break is deliberate."""

import doctest
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module

import pytest
from helpers import ROOT

import semsim
from semsim.comparison.compared import Compared


def test_the_public_names_are_these():
    assert semsim.__all__ == [
        "SemSim",
        "SemSimLoss",
        "attack",
        "compare",
        "demo",
        "metrics",
        "score",
        "torchmetrics",
    ]


def test_the_public_names_of_the_metrics_are_these():
    assert semsim.metrics.__all__ == [
        "BACKBONES",
        "FAMILIES",
        "METRICS",
        "Judge",
        "Metric",
        "MetricSpec",
        "Pairs",
        "Reference",
        "Resources",
        "Scores",
        "Summary",
        "all_metrics",
        "fid",
        "find_metric",
        "is_known",
        "kid",
        "lpips",
        "ms_ssim",
        "mse",
        "psnr",
        "psnr_registered",
        "ssim",
        "ssim_registered",
        "summarise",
    ]


def public(name):
    found = Compared if name.startswith("Compared") else semsim
    for part in name.removeprefix("Compared.").split("."):
        found = getattr(found, part) if part != "Compared" else found
    return found


def parameters(function):
    """Names, kinds and defaults; of a default that is no plain value, that there is one."""
    plain = (str, int, float, bool, type(None), tuple)
    found = inspect.signature(function).parameters.values()
    bare = [
        one.replace(
            annotation=one.empty,
            default=one.default
            if isinstance(one.default, plain) or one.default is one.empty
            else ...,
        )
        for one in found
    ]
    return str(inspect.Signature(bare))


# To change one of these breaks what people have written: only with a line in CHANGELOG.md.
SIGNATURES = {
    "SemSim": (
        "(settings=None, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), name='untrained', origin=None)"
    ),
    "SemSim.forward": "(self, originals, reconstructions)",
    "SemSim.from_pretrained": "(pretrained_model_name_or_path, **options)",
    "SemSim.from_checkpoint": "(path)",
    "SemSim.save_checkpoint": "(self, path)",
    "SemSimLoss": "(metric, reduction='mean')",
    "SemSimLoss.forward": "(self, reconstructions, originals)",
    "attack": (
        "(model, image, label, attack='invgrad', *, defence='none', shared=None, mean=None, "
        "std=None, seed=0, device='auto', report=Ellipsis)"
    ),
    "compare": (
        "(votes, scores, labels=None, *, headline=None, higher_leaks=(), lower_leaks=(), "
        "settings=Ellipsis, unseen_by='', match_ids=False, checkpoints=Ellipsis, data=Ellipsis, "
        "report=Ellipsis)"
    ),
    "demo": "(name='')",
    "score": (
        "(pairs, metrics=('mse', 'psnr', 'ssim'), *, checkpoints=Ellipsis, device='auto', "
        "kept=None, report=Ellipsis)"
    ),
    "Compared.figures": "(self)",
    "Compared.report": "(self, path)",
    "Compared.write": "(self, folder, *, overwrite=False, width_mm=183.0, report=Ellipsis)",
    "torchmetrics.SemSim": "(metric, **kwargs)",
    "torchmetrics.SemSim.update": "(self, reconstructions, originals)",
    "torchmetrics.SemSim.compute": "(self)",
    "metrics.all_metrics": "(resources)",
    "metrics.fid": "(originals, reconstructions, *, checkpoints=Ellipsis)",
    "metrics.find_metric": "(name)",
    "metrics.is_known": "(name)",
    "metrics.kid": "(originals, reconstructions, *, checkpoints=Ellipsis)",
    "metrics.lpips": "(originals, reconstructions, net='alex', *, checkpoints=Ellipsis)",
    "metrics.ms_ssim": "(originals, reconstructions)",
    "metrics.mse": "(originals, reconstructions)",
    "metrics.psnr": "(originals, reconstructions)",
    "metrics.psnr_registered": "(originals, reconstructions, shift=4, flip=True)",
    "metrics.ssim": "(originals, reconstructions, window='gaussian')",
    "metrics.ssim_registered": "(originals, reconstructions, shift=4, flip=True)",
    "metrics.summarise": "(values)",
}


def test_public_signatures_are_these():
    assert {name: parameters(public(name)) for name in SIGNATURES} == SIGNATURES


def test_every_public_callable_has_its_signature_here():
    modules = {"metrics", "torchmetrics"}
    named = {name for name in semsim.__all__ if name not in modules}
    functions = [
        name
        for name, found in vars(semsim.metrics).items()
        if name in semsim.metrics.__all__ and inspect.isfunction(found)
    ]
    assert named | {f"metrics.{name}" for name in functions} <= {*SIGNATURES}


# What is no function of its own shows itself in the example of its class.
IN_ITS_CLASS = re.compile(r"(SemSimLoss\.|Compared\.|torchmetrics\.SemSim\.).+")


def test_every_public_function_has_an_example():
    names = [name for name in SIGNATURES if not IN_ITS_CLASS.fullmatch(name)]
    assert [name for name in names if ">>> " not in public(name).__doc__] == []


# A paper by its year, or that there is none.
SOURCE = re.compile(r"\b(19|20)\d\d\b|is our own")
# What is a definition of its own and no paper's.
NO_PAPER = {"metrics.mse", "metrics.psnr"}
MEASURES = {
    name for name in SIGNATURES if "originals" in SIGNATURES[name] and name.startswith("metrics.")
}


def test_what_measures_says_which_paper_it_is_from():
    names = {"SemSim", "compare", *MEASURES} - NO_PAPER
    assert {name for name in names if not SOURCE.search(public(name).__doc__)} == set()


IMAGES = re.compile(r"in \[0, 1\]|[Aa]s for `mse`")
IN_WORDS = re.compile(r"\w+").findall
VALUES = re.compile(r"in \[-?\d, \d\]|0 or more|in dB|can be negative|batch")


def test_public_functions_of_images_say_ranges():
    of_images = [n for n in SIGNATURES if {"originals", "image"} & {*IN_WORDS(SIGNATURES[n])}]
    words = {name: " ".join((public(name).__doc__ or "").split()) for name in of_images}
    assert len(words) > 10
    assert [name for name in words if not IMAGES.search(words[name])] == []
    after = {name: IMAGES.sub("", words[name], count=1) for name in words if name != "attack"}
    assert [name for name in after if not VALUES.search(after[name])] == []


def test_every_public_name_is_there_and_says_what_it_is():
    assert [name for name in semsim.__all__ if not getattr(semsim, name).__doc__] == []
    assert {*semsim.__all__} <= {*dir(semsim)}


def test_every_public_name_is_in_the_reference():
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    assert [name for name in semsim.__all__ if f"::: semsim.{name}\n" not in page] == []


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Metric'"):
        semsim.Metric  # noqa: B018


def test_a_type_checker_sees_a_misspelt_name(tmp_path):
    """Of the package the first file alone, and no library, lest all of it and torch be checked."""
    (tmp_path / "semsim").mkdir()
    shutil.copy(ROOT / "semsim/__init__.py", tmp_path / "semsim")
    (tmp_path / "mine.py").write_text("import semsim\nsemsim.score\nsemsim.scor\n")
    check = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--no-site-packages"]
    check += ["--config-file=", "mine.py"]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True)
    told = [line for line in done.stdout.splitlines() if line.startswith("mine.py")]
    assert ["mine.py:3: error:" in line and '"scor"' in line for line in told] == [True], done


@pytest.fixture
def beside_another(tmp_path):
    """A folder of a distribution called semsim, as the index's own leaves one."""
    (tmp_path / "semsim-1.1.1.dist-info").mkdir()
    about = "Metadata-Version: 2.1\nName: semsim\nVersion: 1.1.1\n"
    (tmp_path / "semsim-1.1.1.dist-info/METADATA").write_text(about)
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}


@pytest.mark.parametrize("asked", ["Metric", "score"])
def test_a_name_that_another_project_took_away_is_told(beside_another, asked):
    code = f"import semsim; semsim.PUBLIC['score'] = 'semsim.gone'; semsim.{asked}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd="/", env=beside_another, capture_output=True, text=True
    )
    assert "Another project's semsim is or was installed" in done.stderr.splitlines()[-1]


def test_what_another_project_left_without_its_first_file_is_told(tmp_path):
    shutil.copytree(ROOT / "semsim/base", tmp_path / "semsim/base")
    code = "from semsim.base.errors import foreign; print(foreign())"
    around = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd="/",
        env=around,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Install only semsim-studio, in a new environment." in done.stdout


def test_the_command_tells_of_another_project(tmp_path):
    ours, brought = tmp_path / "semsim", tmp_path / "brought"
    ours.mkdir()
    brought.mkdir()
    (ours / "__init__.py").touch()  # as another project has it
    shutil.copy(ROOT / "app.py", brought)
    for place in ROOT.glob("semsim/*"):
        if place.name != "__init__.py":
            (ours / place.name).symlink_to(place)
    (ours / "brought").symlink_to(brought)
    code = "from semsim.cli.studio import main; main()"
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd="/",
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stderr.startswith("Error: Another project's semsim is or was installed")
    assert done.returncode == 1


def test_doctor_tells_of_another_project(beside_another):
    """Of one that lies on its path, and of none once it does not."""
    code = "import sys; from pathlib import Path; from semsim.cli.doctor import machine"
    show = "; print([row[0] for row in machine(Path('nowhere'), 'cpu')])"
    code += f"{show}; sys.path.remove(sys.argv[1]){show}"
    other = beside_another["PYTHONPATH"].partition(os.pathsep)[0]
    done = subprocess.run(
        [sys.executable, "-c", code, other],
        cwd="/",
        env=beside_another,
        capture_output=True,
        text=True,
        check=True,
    )
    told = ["'semsim'" in line for line in done.stdout.splitlines()]
    assert told == [True, False], done


def test_importing_semsim_imports_nothing_else():
    code = "import json, sys, semsim; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = set(json.loads(done.stdout))
    assert not modules & {"torch", "numpy", "pandas", "huggingface_hub", "semsim.metrics"}


FILES_OF_METRICS = ("base", "pixel", "structural", "registered", "multi_scale")


@pytest.mark.parametrize(
    "module",
    [
        *sorted({*semsim.PUBLIC.values()}),
        *(f"semsim.metrics.{name}" for name in FILES_OF_METRICS),
        "semsim.comparison.compared",
    ],
)
def test_the_examples_of_public_functions_are_right(module, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
