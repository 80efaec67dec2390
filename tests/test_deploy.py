"""What lies in deploy/ and is not started by a test: what can be known of it without."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from contextlib import contextmanager
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath

import pytest
import yaml
from helpers import ROOT, skip_or_fail
from programs import needed

import annotation

DEPLOY = ROOT / "deploy"
IGNORED = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def is_ignored(path: str) -> bool:
    """Whether an image lacks a file: the last pattern that fits it, or a folder of it, says."""
    one = PurePosixPath(path)
    whole = [str(part) for part in (one, *one.parents)]
    ignored = False
    for line in IGNORED.splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        deep = line.startswith("**/")
        fits = any(
            part.count("/") == pattern.count("/") and fnmatchcase(part, pattern)
            for part in ([PurePosixPath(part).name for part in whole] if deep else whole)
        )
        if fits and not line.startswith("#"):
            ignored = not line.startswith("!")
    return ignored


@pytest.mark.parametrize(
    "path",
    [
        "data/studies.db",
        "data/studies.db-wal",
        "data/images/ab/cd.png",
        "data/backups/2026.db",
        "data/runs/net/originals/0.png",
        "checkpoints/mine.safetensors",
        "checkpoints/mine.card.json",
        ".git/config",
        ".venv/bin/python",
        "semsim/__pycache__/x.pyc",
        "site/index.html",
    ],
)
def test_an_image_holds_nothing_that_people_made(path):
    assert is_ignored(path)


def test_an_image_holds_all_that_comes_with_the_product():
    """`COPY . .` takes the files of a checkout: what git has and what people made."""
    done = subprocess.run(
        [needed("git"), "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if not done.stdout:
        skip_or_fail("git does not know this folder")
    assert [path for path in done.stdout.splitlines() if is_ignored(path)] == []


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REF = "GITHUB_REF_NAME"
COMPOSED = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
GIVEN = {"SEMSIM_ADMIN_PASSWORD": "four words", "POSTGRES_PASSWORD": "p@ss:w/rd"}


def test_votes_and_trained_semsims_outlive_a_container():
    told = COMPOSED
    studio, database = told["services"]["studio"], told["services"]["database"]
    (home,) = re.findall("^ENV SEMSIM_HOME=(.+)$", DOCKERFILE, re.MULTILINE)
    assert re.findall("^VOLUME (.+)$", DOCKERFILE, re.MULTILINE) == [home]
    assert "SEMSIM_HOME" not in studio["environment"]
    assert "--data-dir" not in studio["command"]
    assert "--checkpoints" not in studio["command"]
    kept = [volume.split(":") for volume in (*studio["volumes"], *database["volumes"])]
    assert kept[0] == ["kept", home]
    assert {name for name, _ in kept} == set(told["volumes"])


def test_a_container_runs_as_a_user_who_owns_what_is_kept_and_nothing_else():
    user = DOCKERFILE.index("\nUSER studio\n")
    made = DOCKERFILE.index("useradd --create-home studio && mkdir /kept && chown studio /kept")
    assert made < DOCKERFILE.index("\nVOLUME /kept\n") < user < DOCKERFILE.index("\nCMD [")


def test_a_container_tells_whether_it_is_well():
    told = DOCKERFILE.replace("\\\n", "")
    (check,) = re.findall(r"^HEALTHCHECK [^\[]*CMD (\[.+\])$", told, re.MULTILINE)
    program, *asked = json.loads(check)
    answers = {"/health": 200}
    with answering(answers) as port:
        words = [word.replace("127.0.0.1:7860", f"127.0.0.1:{port}") for word in asked]
        assert program == "python"
        assert subprocess.run([sys.executable, *words], capture_output=True).returncode == 0
        answers["/health"] = 503
        assert subprocess.run([sys.executable, *words], capture_output=True).returncode == 1


@contextmanager
def answering(codes):
    """A server, at the port that this gives, which answers each path with its code."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(codes[self.path])
            self.end_headers()

        def log_message(self, *args):
            """Nothing is told."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(("torch", "lines"), [("cuda", 0), ("cpu", 2)])
def test_an_image_for_the_processor_alone_takes_torch_from_its_own_index(tmp_path, torch, lines):
    (command,) = re.findall(r"^RUN (if .+)$", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)
    shutil.copy(ROOT / "requirements.txt", tmp_path)
    (tmp_path / "pip").write_text('#!/bin/sh\necho "$*"; cat torch.txt\n')
    (tmp_path / "pip").chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", command.replace("/tmp/torch.txt", "torch.txt")],
        cwd=tmp_path,
        env={"TORCH": torch, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    asked, *pinned = done.stdout.splitlines() or [""]
    assert ("--index-url https://download.pytorch.org/whl/cpu" in asked) == bool(lines)
    assert [line.split("==")[0] for line in pinned] == ["torch", "torchvision"][:lines]


def test_the_studio_knows_every_option_that_is_given_there():
    asked = [sys.executable, ROOT / "app.py", "serve", "--help"]
    known = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    unit = (DEPLOY / "semsim-studio@.service").read_text(encoding="utf-8").replace("\\\n", " ")
    (image,) = re.findall(r"^CMD \[(.+)\]$", DOCKERFILE, re.MULTILINE)
    (started,) = re.findall("^ExecStart=(.+)$", unit, re.MULTILINE)
    for command in (started, image.replace(",", " "), COMPOSED["services"]["studio"]["command"]):
        options = [word for word in shlex.split(command) if word.startswith("--")]
        assert options, command
        assert [one for one in options if f"{one} " not in known] == [], command


def test_a_database_that_still_sets_itself_up_is_not_taken_for_well():
    """Its image answers on the socket meanwhile, and by TCP only when it stays."""
    check = shlex.split(COMPOSED["services"]["database"]["healthcheck"]["test"])
    assert check[:3] == ["pg_isready", "-h", "127.0.0.1"]
    needed = COMPOSED["services"]["studio"]["depends_on"]["database"]["condition"]
    assert needed == "service_healthy"


def test_the_workflow_does_what_every_machine_does():
    jobs = workflow("ci")["jobs"]
    *_, trusted, last = [step.get("run", "") for step in jobs["all"]["steps"]]
    assert "safe.directory" in trusted  # tests ask git, which reads no other user's folder
    assert last == ".ci/run"
    assert os.access(ROOT / last, os.X_OK)


def test_the_workflow_has_every_python_that_is_claimed():
    jobs, project = workflow("ci")["jobs"], PYPROJECT["project"]
    language = "Programming Language :: Python :: 3."
    claimed = [one.rpartition(" ")[2] for one in project["classifiers"] if one.startswith(language)]
    assert jobs["all"]["strategy"]["matrix"]["python"] == claimed
    oldest = jobs["oldest"]["steps"][1]["with"]["python-version"]
    assert project["requires-python"] == f">={oldest.removesuffix('.0')}"


def test_a_release_is_published_only_where_somebody_has_switched_it_on():
    told = workflow("release")
    build, publish = told["jobs"]["build"], told["jobs"]["publish"]
    assert told[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads `on` as true
    assert (publish["if"], publish["environment"]) == ("vars.PUBLISH == 'on'", "pypi")
    assert publish["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()
    steps = [step.get("run") for step in build["steps"]]
    assert steps.index("make test") < steps.index("python -m build")
    # The tag has to be the version, read from the file as the workflow does.
    (checked,) = (step["run"] for step in build["steps"] if "__version__" in step.get("run", ""))
    for tag, code in ((f"v{annotation.__version__}", 0), ("v0.0.9", 1)):
        done = subprocess.run(checked, shell=True, cwd=ROOT, env={**os.environ, REF: tag})
        assert done.returncode == code


def workflow(name: str) -> dict:
    path = ROOT / f".github/workflows/{name}.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_a_password_is_no_part_of_a_command():
    """Nor of an address, in which some letters would have another meaning."""
    studio, database = COMPOSED["services"]["studio"], COMPOSED["services"]["database"]
    assert "$" not in studio["command"]
    assert studio["environment"]["PGPASSWORD"] == database["environment"]["POSTGRES_PASSWORD"]


def test_nothing_is_to_be_said_of_the_dockerfile():
    done = subprocess.run(
        [needed("hadolint"), DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def config(given):
    around = {name: value for name, value in os.environ.items() if name not in GIVEN}
    asked = [needed("docker-compose"), "-f", DEPLOY / "compose.yaml", "config"]
    return subprocess.run(
        asked, env={**around, **given}, capture_output=True, text=True, check=False
    )


def test_compose_reads_its_file():
    read = yaml.safe_load(config(GIVEN).stdout)["services"]
    assert read["studio"]["environment"]["PGPASSWORD"] == GIVEN["POSTGRES_PASSWORD"]
    assert {*read} == {*COMPOSED["services"]}


@pytest.mark.parametrize("absent", GIVEN)
def test_compose_names_the_password_that_is_not_given(absent):
    done = config({name: value for name, value in GIVEN.items() if name != absent})
    assert done.stdout == ""
    assert absent in done.stderr


def test_the_unit_is_one_that_systemd_reads(tmp_path):
    unit = shutil.copy(DEPLOY / "semsim-studio@.service", tmp_path)
    done = subprocess.run(
        [needed("systemd-analyze"), "verify", unit], capture_output=True, text=True, check=False
    )
    # Nothing of the product is installed there.
    absent = "Command /opt/semsim-studio/.venv/bin/semsim-studio is not executable: No such file"
    assert [line for line in done.stderr.splitlines() if absent not in line] == []
    assert absent in done.stderr
