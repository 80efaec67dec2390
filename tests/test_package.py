"""The package: what is in it, and that it works where nothing else of this checkout is.

Each environment holds links to exactly the distributions that the package asks for, as their own
records tell them, so that an extra that was not asked for really is missing.
"""

import importlib.metadata as installed
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import uuid
import venv
import zipfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import hatchling.__about__
import httpx
import pytest
import yaml
from helpers import ROOT, limit, until
from made_once import made_once
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image
from programs import needed
from studio import START_SECONDS
from test_docs import ACTIVATES, BLOCKS, PUBLISHED, RUNNER, SHARED, given_to_runner

from annotation.store import Store
from annotation.study.builtin import PEOPLE
from annotation.study.exports import export_votes
from annotation.study.labelling import list_studies

WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = WHOLE["project"], WHOLE["dependency-groups"]
EXTRAS = (
    "attacks",
    "grid",
    "lpips",
    "fid",
    "ms-ssim",
    "torchmetrics",
    "studio",
    "s3",
    "vlm",
    "all",
)
# Rooms and modules that need an extra, and say so when they are imported; all else is the core.
OF_AN_EXTRA = {
    "semsim.ui": "studio",
    "semsim.systems.audit.page": "studio",
    "semsim.base.pages_library": "studio",
    "semsim.grid.machines": "grid",
    "semsim.grid.dask_executor": "grid",
    "semsim.systems.federated": "attacks",
    "semsim.papers": "attacks",
    "semsim.cli.reproduce": "attacks",
    "semsim.torchmetrics": "torchmetrics",
}
# The second needs Flower, which has an environment of its own.
NOT_ASKED = ("__main__", "semsim.systems.federated.flower.apps")


def run(command, **changes):
    """What the command printed; fails where it does not end with `code`, 0 unless said."""
    code = changes.pop("code", 0)
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **changes)
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def package():
    """The sdist, and the wheel that is built from what is in it and from nothing else."""
    listed = run(
        [needed("git"), "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT
    )
    made_of = [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]
    folder = made_once("package", [*made_of, Path(hatchling.__about__.__file__)], build)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def build(folder):
    command = [sys.executable, "-m", "hatchling", "build", "-d", folder]
    run([*command, "-t", "sdist"], cwd=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as unpacked:
        shutil.unpack_archive(sdist, unpacked)
        (source,) = Path(unpacked).iterdir()
        run([*command, "-t", "wheel"], cwd=source)


def tracked(*folders):
    """The files in git below these folders of the checkout."""
    told = run([needed("git"), "ls-files", *folders], cwd=ROOT)
    return {line for line in told.splitlines() if (ROOT / line).is_file()}


def test_the_wheel_has_every_file_of_the_product_and_no_other(package):
    names = set(zipfile.ZipFile(package[1]).namelist())
    brought = tracked("data/demo", "checkpoints")
    wanted = tracked("semsim", "annotation") | {f"semsim/brought/{name}" for name in brought}
    ours = {name for name in names if ".dist-info/" not in name}
    assert ours == wanted | {"semsim/brought/app.py"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {"semsim/py.typed", "annotation/py.typed"} <= names


def test_the_package_says_what_it_is(package):
    with zipfile.ZipFile(package[1]) as wheel:
        (place,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        about = wheel.read(place).decode()
    module = (ROOT / "semsim/__init__.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "(.+)"$', module, re.MULTILINE).group(1)
    assert f"\nVersion: {version}\n" in about
    assert "\nLicense-Expression: Apache-2.0\n" in about
    assert re.findall(r"^Provides-Extra: (.+)$", about, re.MULTILINE) == sorted(EXTRAS)
    assert "\nClassifier: Typing :: Typed\n" in about


RELATIVE = re.compile(r"\]\((?!https?://|#)[^)]*\)")


def test_no_link_of_the_packages_page_is_relative(package):
    with zipfile.ZipFile(package[1]) as wheel:
        (place,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        head, _, page = wheel.read(place).decode().partition("\n\n")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert RELATIVE.search(readme)
    assert RELATIVE.findall(page) == []
    assert page.splitlines()[:4] == readme.splitlines()[:4]
    assert "Project-URL" not in head  # until there is a place that is ours


def test_the_packages_page_leads_into_the_repository_once_there_is_one():
    changed = runpy.run_path(str(ROOT / "docs/package_page.py"))["without_relative"]
    text = (
        "![a map](docs/map.png), [pages](docs/index.md), [us](https://example.org), [here](#start)"
    )
    assert changed(text, "https://example.org/r") == (
        "![a map](https://example.org/r/raw/HEAD/docs/map.png), "
        "[pages](https://example.org/r/blob/HEAD/docs/index.md), [us](https://example.org), "
        "[here](#start)"
    )
    assert changed(text, "") == (
        "*(Picture: a map)*, pages, [us](https://example.org), [here](#start)"
    )


def test_the_citation_is_of_this_version_by_these_authors():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    module = (ROOT / "semsim/__init__.py").read_text(encoding="utf-8")
    assert f'__version__ = "{cited["version"]}"' in module
    assert cited["authors"] == PROJECT["authors"]
    assert cited["license"] == PROJECT["license"]


def wanted_of(texts):
    """Requirements by name; the project's own extras are spread out already."""
    found = [Requirement(text) for text in texts]
    return [one for one in found if one.name != PROJECT["name"]]


def ranges():
    extras = PROJECT["optional-dependencies"].values()
    return wanted_of([*PROJECT["dependencies"], *(text for texts in extras for text in texts)])


def pins(*names):
    """Distribution → the exact version that is installed here by the files of these names."""
    lines = [
        line.partition("#")[0].strip()
        for name in names
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if not line.startswith("-r")
    ]
    found = [Requirement(line) for line in lines if line]
    here = [one for one in found if one.marker is None or one.marker.evaluate()]
    assert all(str(one.specifier).startswith("==") for one in found)
    return {canonicalize_name(one.name): one.specifier for one in here}


APPLICATION, TESTED = "requirements.txt", "requirements-dev.txt"
# Torch pins what it brings of CUDA, and on Linux alone.
OF_TORCH = re.compile(r"nvidia-.+|cuda-.+|triton")


def test_every_dependency_is_pinned_inside_its_range():
    pinned = {name: [*pin] for name, pin in pins(APPLICATION, TESTED).items()}
    loose = [str(one) for one in ranges() if not is_pinned(one, pinned)]
    assert loose == []


def is_pinned(wanted, pinned):
    """Whether what is wanted is held to one version inside its range."""
    found = pinned.get(canonicalize_name(wanted.name), [])
    return (
        len(found) == 1
        and found[0].operator == "=="
        and wanted.specifier.contains(found[0].version)
    )


def test_all_that_the_application_brings_is_pinned_and_nothing_else():
    """All levels down, as the installed distributions tell it; CUDA is left to torch."""
    brought = {name for extra in ("studio", "lpips", "fid") for name in closure(extra)}
    assert {name for name in brought if not OF_TORCH.fullmatch(name)} == {*pins(APPLICATION)}


def test_all_that_the_tests_bring_is_pinned():
    brought = below(GROUPS["dev"]).union(*map(closure, ("ms-ssim", "torchmetrics", "s3", "vlm")))
    left = {name for name in brought if not OF_TORCH.fullmatch(name)}
    assert left <= {*pins(APPLICATION, TESTED)}


@pytest.mark.parametrize("group", [name for name in GROUPS if name != "dev"])
def test_an_environment_of_its_own_is_pinned_inside_its_ranges(group):
    pinned = pins(f"requirements-{group}.txt")
    for wanted in map(Requirement, GROUPS[group]):
        (pin,) = pinned[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(pin.version), wanted
    assert set(pinned) > {canonicalize_name(Requirement(text).name) for text in GROUPS[group]}


def test_what_is_pinned_is_what_is_tested():
    found = {name: str(spec) for name, spec in pins(APPLICATION, TESTED).items()}
    assert found == {name: f"=={installed.version(name)}" for name in found}


def test_pins_say_nothing_of_where_they_were_compiled():
    for path in ROOT.glob("requirements*.txt"):
        assert not re.search(r"://|^--|^/", path.read_text(encoding="utf-8"), re.MULTILINE), path


def closure(extra):
    """The distributions that the package with this extra ("" is none) brings, all levels down."""
    texts = list(PROJECT["dependencies"])
    open_extras = [extra] if extra else []
    while open_extras:
        for text in PROJECT["optional-dependencies"][open_extras.pop()]:
            one = Requirement(text)
            if one.name == PROJECT["name"]:
                open_extras += one.extras
            else:
                texts.append(text)
    return below(texts)


def below(texts):
    """The distributions that these requirements bring here, all levels down."""
    left, seen = [(one, "") for one in map(Requirement, texts)], set()
    while left:
        one, of_extra = left.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": of_extra}):
            continue
        for name in ("", *one.extras):
            if (key := (canonicalize_name(one.name), name)) not in seen:
                seen.add(key)
                left += [(more, name) for more in asked_by(one.name)]
    return {name for name, _ in seen}


@cache
def asked_by(name):
    """The requirements of a distribution that is installed here, as its records tell them."""
    return [Requirement(text) for text in installed.distribution(name).requires or []]


def environment(folder, wheel, extra=""):
    """An environment of its own with the wheel and what it asks for with this extra."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in closure(extra):
        for file in installed.files(name) or []:
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(Path(installed.distribution(name).locate_file(top)))
    run([*pip(folder / "bin"), "install", "-q", "--no-index", "--no-deps", "--no-compile", wheel])
    return folder / "bin"


def pip(programs):
    """Return the first words of a pip command for the environment of these programs."""
    return [sys.executable, "-m", "pip", "--python", programs / "python"]


def alone(home):
    """The variables of somebody who has this home and knows nothing of the checkout."""
    dropped = (
        "PYTHONPATH",
        "SEMSIM_HOME",
        "XDG_DATA_HOME",
        "VIRTUAL_ENV",
        "PYTHONDONTWRITEBYTECODE",
    )
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    home.mkdir(exist_ok=True)
    return {**kept, "HOME": str(home), "GRADIO_ANALYTICS_ENABLED": "False"}


@pytest.fixture(scope="module")
def core(package, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("core"), package[1])


SCORE = ["score", "originals", "reconstructions"]
EXTRA_OF = {"lpips-alex": "lpips", "fid": "fid", "ms-ssim": "ms-ssim"}  # by metric
LACKING = {
    "serve": "studio",
    "doctor": "studio",
    "accounts list": "studio",
    "study list": "studio",
    "reproduce semsim": "attacks",
    "train run --labels nowhere.parquet --name x": "attacks",
    "import auto made --name x --yes": "attacks",
    "split run --dataset digits": "attacks",
    "report nowhere.parquet": "attacks",
    "campaign run --name x --dataset digits": "grid",
    "federated compare --out x.parquet": "attacks",
}
# Blocks of the README that are for who has the package alone.
README = [
    one
    for one in BLOCKS
    if one.page == "README.md" and not one.text.startswith(("make ", ACTIVATES))
]
# Scores in Python, runs the README's code, types lines, imports modules; prints what came of it.
IN_TURN = """
import importlib, io, json, sys
from contextlib import redirect_stderr, redirect_stdout
import semsim
from semsim.base.errors import MissingExtraError
codes, lines, modules = json.load(sys.stdin)
table = semsim.score(("originals", "reconstructions"), ["mse"])
metric = semsim.SemSim.from_pretrained("checkpoints/demo")
demo = semsim.demo("silu-none-invgrad")
pairs = semsim.score((demo / "originals", "demo/silu-none-invgrad/reconstructions"), ["mse"])
scored = semsim.__version__, semsim.__file__, table["mse"].tolist(), metric.name, len(pairs)
shown = io.StringIO()
with redirect_stdout(shown):
    for code in codes:
        exec(code, {})

from semsim.base.storage.places import BROUGHT
sys.path.append(str(BROUGHT))
from app import front
told = []
for words in lines:
    said, code = io.StringIO(), 0
    sys.argv = ["semsim-studio", *words]
    with redirect_stdout(said), redirect_stderr(said):
        try:
            front(prog_name="semsim-studio")
        except SystemExit as end:
            code = end.code
    told.append([code, said.getvalue()])

refused = {}
for name in modules:
    try:
        importlib.import_module(name)
    except ImportError as error:
        refused[name] = [isinstance(error, MissingExtraError), str(error)]
print(json.dumps([scored, shown.getvalue(), told, refused]))
"""


class InTurn(NamedTuple):
    """Results of one process of the core in `folder`: a Python knows what it has imported."""

    folder: Path
    scored: list[object]
    shown: str  # what the README's code printed
    told: dict[str, tuple[int, str]]  # line after `semsim-studio` → its exit code, and what it said
    refused: dict[str, tuple[bool, str]]  # module → whether its error is ours, and what it says


@pytest.fixture(scope="module")
def in_turn(core, tmp_path_factory):
    folder = laid_in(tmp_path_factory.mktemp("in-turn"))
    shutil.copytree(folder / "originals", folder / "made/originals")
    shutil.copytree(folder / "reconstructions", folder / "made/net")
    lines = [shlex.join([*SCORE, "--metrics", f"mse,{metric}"]) for metric in EXTRA_OF]
    lines += [shlex.join([*SCORE, "--out", "scores.parquet"]), *LACKING]
    files = [path for path in tracked("semsim") if path.endswith(".py")]
    names = [path.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for path in files]
    modules = sorted(name for name in names if not name.endswith(NOT_ASKED))
    codes = [one.text for one in README if one.kind == "python"]
    asked = json.dumps([codes, [shlex.split(line) for line in lines], modules])
    around = {"cwd": folder, "env": alone(folder / "home"), "input": asked}
    printed = run([core / "python", "-c", IN_TURN], **around)
    scored, shown, told, refused = json.loads(printed.splitlines()[-1])
    return InTurn(folder, scored, shown, dict(zip(lines, told, strict=True)), refused)


@pytest.fixture
def two_folders(tmp_path):
    return laid_in(tmp_path)


def laid_in(folder):
    """The folder, with two folders of two pictures each."""
    for name, shade in (("originals", 100), ("reconstructions", 151)):
        (folder / name).mkdir()
        for picture in ("a", "b"):
            Image.new("RGB", (32, 32), (shade,) * 3).save(folder / name / f"{picture}.png")
    return folder


def test_the_core_scores_two_folders_from_the_command_line(core, two_folders):
    """Each pixel is 51 of 255 off, so the MSE is 0.04."""
    around = {"cwd": two_folders, "env": alone(two_folders / "home")}
    told = run([core / "semsim-studio", *SCORE, "--metrics", "mse,semsim:demo"], **around)
    assert re.search(r"^mse +0\.04 ", told, re.MULTILINE)
    assert "semsim:demo" in (two_folders / "reconstructions-scores.csv").read_text()
    kept = two_folders / "home/.local/share/semsim-studio/checkpoints/demo.safetensors"
    assert kept.is_file()


def test_a_metric_or_a_format_without_its_libraries_names_the_extra(in_turn):
    lines = [line for line in in_turn.told if line not in LACKING]
    told = [in_turn.told[line] for line in lines]
    assert [code for code, _ in told] == [1, 1, 1, 2]
    for (_, said), extra in zip(told, (*EXTRA_OF.values(), "attacks"), strict=True):
        assert f'pip install "semsim-studio[{extra}]"' in said


def test_the_core_scores_two_folders_and_loads_a_semsim_in_python(core, in_turn):
    version, place, scores, name, pairs = in_turn.scored
    assert version == installed_version(core)
    assert Path(place).is_relative_to(core.parent)
    assert scores == pytest.approx([0.04, 0.04])
    assert name == "demo"
    assert pairs == 12


def installed_version(core):
    code = "import importlib.metadata as m; print(m.version('semsim-studio'))"
    return run([core / "python", "-c", code]).strip()


def test_the_core_has_no_studio_and_says_how_to_get_it(core, tmp_path):
    around = {"cwd": tmp_path, "env": alone(tmp_path / "home")}
    told = run([core / "semsim-studio", "serve"], code=2, **around)
    assert told.startswith("Error: ")
    assert 'pip install "semsim-studio[studio]"' in told
    assert not (core / "semsim").exists()  # somebody else's distribution has that name


def test_a_command_without_its_libraries_names_the_extra_and_begins_nothing(in_turn):
    for words, extra in LACKING.items():
        code, said = in_turn.told[words]
        last = said.splitlines()[-1]
        assert (code, last[:7]) == (2, "Error: "), words
        assert f'pip install "semsim-studio[{extra}]"' in last
        assert "Traceback" not in said
    assert not list((in_turn.folder / "home").rglob("runs"))


def test_no_module_of_the_core_imports_an_extra(in_turn):
    refused = in_turn.refused
    places = {name: place_of(name) for name in refused}
    assert [(name, refused[name]) for name, place in places.items() if place is None] == []
    for name, place in places.items():
        if OF_AN_EXTRA[place] != "studio":  # whose start names it; nothing else imports these
            assert refused[name][0], (name, refused[name])
            assert f"semsim-studio[{OF_AN_EXTRA[place]}]" in refused[name][1]
    assert set(places.values()) == set(OF_AN_EXTRA)


def place_of(module):
    """The key of `OF_AN_EXTRA` that a module is or lies below; None for the core."""
    return next((one for one in OF_AN_EXTRA if f"{module}.".startswith(f"{one}.")), None)


@pytest.fixture(scope="module")
def with_studio(package, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("with-studio"), package[1], "studio")


def test_nothing_is_missing_where_the_studio_is_installed(with_studio):
    assert "No broken requirements" in run([*pip(with_studio), "check"])


def test_the_readme_is_typed_where_only_the_wheel_is(in_turn, core, tmp_path):
    """No extra is there: its lines in a login shell and an empty folder, its code in a Python."""
    assert "ssim" in in_turn.shown
    empty = tmp_path / "empty"
    empty.mkdir()
    typed = [one.text for one in README if one.kind == "sh"]
    assert {one.kind for one in README} == {"sh", "python"}
    lines = "\n".join([f". {core}/activate", *typed])
    bare = {"HOME": str(tmp_path), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    run(["bash", "--login", "-e"], cwd=empty, env=bare, input=lines)
    assert re.findall(r"--out (\S+)", lines) == [one.name for one in empty.iterdir()]


@pytest.fixture(scope="module")
def with_all(package, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("with-all"), package[1], "all")


def test_each_page_is_typed_where_only_the_wheel_is(with_all, tmp_path):
    """In an empty folder, with the examples that a page links to; README is typed above."""
    empty, given, results = (tmp_path / name for name in ("empty", "steps.json", "results.json"))
    empty.mkdir()
    shutil.copytree(ROOT / "examples", empty / "examples")
    if SHARED.exists():
        (empty / PUBLISHED).symlink_to(SHARED)
    steps = given_to_runner(given, left=["README.md"])
    around = {"cwd": empty, "env": alone(tmp_path / "home")}
    run([with_all / "python", RUNNER, given, results], **around)
    done = json.loads(results.read_text())
    failed = [(*step, *one) for step, one in zip(steps, done, strict=True) if one[0]]
    assert failed == []
    written = [name for _, step in steps for name in re.findall(r"--out (\S+)", step)]
    assert [name for name in written if not (empty / name).exists()] == []


def test_the_installed_studio_serves_the_label_page_and_takes_a_vote(with_studio, tmp_path, port):
    data = tmp_path / "home/.local/share/semsim-studio/data"
    command = [with_studio / "semsim-studio", "serve", "--local", "--port", str(port)]
    around = alone(tmp_path / "home")
    with (
        (tmp_path / "log").open("w") as log,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=limit(60)) as browser,
    ):
        server = subprocess.Popen(command, cwd=tmp_path, env=around, stdout=log, stderr=log)
        try:
            until(lambda: answers(browser, server, tmp_path / "log"), START_SECONDS)
            with Store(f"sqlite:///{data / 'studies.db'}", make=False) as store:
                until(lambda: demo_of(store) is not None, START_SECONDS)
                study = demo_of(store)
                label_one(browser, study.token)
                votes = export_votes(store, study.id)
        finally:
            server.terminate()
            server.wait(limit(60))
    assert votes["answer"].tolist() == ["none"]
    assert not votes["simulated"].any()


def answers(browser, server, log):
    assert server.poll() is None, log.read_text()
    try:
        return browser.get("/signed-out").status_code == 200
    except httpx.TransportError:
        return False


def demo_of(store):
    return next((study for study in list_studies(store) if study.name == PEOPLE), None)


def label_one(browser, token):
    """Sign in, open the page with its script and a picture, and answer once."""
    joined = browser.post(f"/join/{token}", data={"name": "Ada"}, follow_redirects=False)
    assert (joined.status_code, joined.headers["location"]) == (303, "/begin")
    who = re.search(r'name="who" value="([^"]+)"', browser.get("/begin").text)[1]
    browser.post("/begin", data={"who": who, "step": "instructions"})
    page = browser.get("/label")
    assert page.status_code == 200
    (script,) = re.findall(r'src="(/[^"]+/labeller\.js[^"]*)"', page.text)
    assert browser.get(script).status_code == 200
    item = browser.get("/api/next", params={"tab": "tab", "n": 1}).json()["items"][0]
    vote = {"id": str(uuid.uuid4()), "item": item["item"], "answer": "none", "tab": "tab"}
    vote["version"] = 1
    assert browser.post("/api/vote", json=vote).status_code == 200
