"""What is public is listed once, imported late, and a break is deliberate."""

import doctest
import json
import subprocess
import sys
from importlib import import_module

import pytest
from studio import ROOT

import semsim


def test_the_public_names_are_these():
    assert semsim.__all__ == [
        "SemSim",
        "SemSimLoss",
        "attack",
        "compare",
        "metrics",
        "score",
        "torchmetrics",
    ]
    functions = {"mse", "psnr", "ssim", "ms_ssim", "psnr_registered", "ssim_registered"}
    functions |= {"lpips", "fid", "kid"}
    assert functions <= set(semsim.metrics.__all__)
    assert all(callable(getattr(semsim.metrics, name)) for name in functions)


@pytest.mark.parametrize("name", semsim.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name):
    assert getattr(semsim, name).__doc__
    assert name in dir(semsim)


@pytest.mark.parametrize("name", semsim.__all__)
def test_every_public_name_is_in_the_reference(name):
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    assert f"::: semsim.{name}\n" in page


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Metric'"):
        semsim.Metric  # noqa: B018


def test_importing_semsim_imports_nothing_else():
    code = "import json, sys, semsim; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = set(json.loads(done.stdout))
    assert not modules & {"torch", "numpy", "pandas", "huggingface_hub", "semsim.metrics"}


@pytest.mark.parametrize(
    "module",
    [*sorted({*semsim.PUBLIC.values()} - {"semsim.metrics"}), "semsim.metrics.functions"],
)
def test_the_examples_of_public_functions_are_right(module, monkeypatch):
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
