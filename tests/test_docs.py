"""What the README and the pages of the site tell people to type is typed here."""

import json
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import copies
import pytest
from helpers import limit, until
from made_campaign import toy_campaign
from programs import NEEDED, needed
from studio import START_SECONDS, answers, environment, typing
from typer.main import get_command

from annotation.cli.main import study
from app import front
from semsim.base.cli.commands import parts_of
from semsim.base.jobs.orders import to_record
from semsim.base.storage.places import PROGRAM
from semsim.base.storage.records import write_record
from semsim.campaign.watch import FORMAT
from semsim.reporting.glossary import glossary

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = "semsim_cifar100_labels.csv"  # not part of the project
SHARED = ROOT.parent / "shared/data" / PUBLISHED
NAVIGATION = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1])
WRITTEN = [
    f"docs/{name}" for name in NAVIGATION if (ROOT / "docs" / name).exists()
]  # not generated
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", *WRITTEN)}
README = TEXTS["README.md"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
EXAMPLES = [
    f"examples/{name}.py"
    for name in ("score_folders", "semsim_as_loss", "attack_classifier", "votes_to_ranking")
]
NOT_RUN = {"dask_jobqueue": "needs a SLURM cluster"}
ACTIVATES = ". .venv/bin/activate"


class Block(NamedTuple):
    """What stands between ``` and ```."""

    page: str
    kind: str
    text: str

    def steps(self):
        """What a reader does with it one after the other."""
        whole = self.kind == "python"
        steps = [self.text] if whole else self.text.splitlines()
        return [(self.page, step) for step in steps if step != ACTIVATES]


def blocks_of(page, whole):
    found = re.findall(r"^( *)```(\w+)\n(.*?)^\1```$", whole, flags=re.DOTALL | re.MULTILINE)
    return [Block(page, kind, textwrap.dedent(text).strip()) for _, kind, text in found]


BLOCKS = [block for page, whole in TEXTS.items() for block in blocks_of(page, whole)]
SEVERAL_MACHINES = next(b.text for b in BLOCKS if b.text.startswith("dask scheduler"))
# semsim/systems/federated/flower/test_superlink.py types it.
FEDERATED = next(b.text for b in BLOCKS if b.text.startswith("semsim-studio federated cert"))
# e2e/test_deployed.py types it, and starts nginx with the file that the page takes in.
DEPLOYED = next(b.text for b in BLOCKS if b.text.startswith("createdb "))
NGINX = "deploy/nginx.conf"
NOT_TYPED = {
    "deploy/semsim-studio@.service": "needs a systemd that runs; test_deploy.py lets one verify it"
}
# Installs, so no test types it here.
START = "docs/how-to/start.md"
_UNTYPED = re.compile(r"^``` \{ \.text \}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BY_HAND = _UNTYPED.findall(TEXTS[START])
# Needs an endpoint; the tests of its command ask a server of their own.
ENDPOINT = _UNTYPED.findall(TEXTS["docs/how-to/vlm.md"])
TAKEN_IN = [name for text in TEXTS.values() for name in re.findall(r'^ *--8<-- "(.*)"', text, re.M)]
EXAMPLE = "tcp://10.0.0.1:8786"  # the address in the page
STEPS = [step for block in BLOCKS if block.kind in ("sh", "python") for step in block.steps()]
MADE = [step for step in STEPS if step[1].startswith("make ")]
TYPED = [step for step in STEPS if step not in MADE]


def copied(folder, *names):
    """A checkout with these folders in `folder`, and the weights that come with it."""
    for name in names:
        ignored = shutil.ignore_patterns(".hypothesis")  # compiled files spare a minute of commands
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    (folder / "checkpoints").mkdir()
    for kept in ("manifest.json", "demo.*"):
        for path in (ROOT / "checkpoints").glob(kept):
            shutil.copy(path, folder / "checkpoints")
    shutil.copy(ROOT / "app.py", folder)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder that looks like a fresh clone, in which commands may write."""
    folder = tmp_path_factory.mktemp("clone")
    copied(folder, "semsim", "annotation", "examples", "data/demo")
    environment(folder)
    if SHARED.exists():
        (folder / PUBLISHED).symlink_to(SHARED)
    return folder


def test_there_are_only_commands_that_are_tested():
    assert MADE[0] == ("README.md", "make run")
    assert len(TYPED) > 30
    lines = [s for block in BLOCKS if block.kind == "sh" for _, s in block.steps()]
    assert [line for line in lines if not is_line(line) and not line.startswith("make ")] == []


def test_every_line_begins_with_a_command_of_a_bare_login_shell(clone, tmp_path):
    """A program of the system, or of the environment that `make run` makes and README activates."""
    pages = {**TEXTS, "CONTRIBUTING.md": CONTRIBUTING}
    lines = [
        line
        for page, whole in pages.items()
        for block in blocks_of(page, whole)
        if block.kind in ("sh", "text") and not block.text.startswith("+")  # a patch
        for line in block.text.splitlines()
    ]
    assert len(lines) > 60
    commands = sorted({command_of(line) for line in lines})
    asked = [f"command -v {shlex.quote(one)} > /dev/null || echo {one}" for one in commands]
    lacking = login_shell(clone, bare(tmp_path), ACTIVATES, *asked).stdout.split()
    assert [name for name in lacking if name not in NEEDED] == []  # Debian has a package of those


def command_of(line):
    return next(word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word))


def test_a_login_shell_reads_each_line_as_it_is_run_here(clone, tmp_path):
    lines = [step for _, step in TYPED if is_line(step)]
    shown = [f"printf '%s\\0' {line}; echo" for line in lines]
    told = login_shell(clone, bare(tmp_path), ACTIVATES, *shown).stdout.splitlines()
    assert [one.split("\0")[:-1] for one in told] == [shlex.split(line) for line in lines]


PLAIN = "/usr/local/bin:/usr/bin:/bin"


def bare(home, **more):
    """The variables of a login shell that has the system's PATH alone; a core, as all tests."""
    one = {"OMP_NUM_THREADS": os.environ["OMP_NUM_THREADS"]}
    return {"PATH": PLAIN, "HOME": str(home), "LANG": "C.UTF-8", **one, **more}


def login_shell(checkout, around, *lines):
    """Return the output of a login shell in a checkout, with these variables, for lines."""
    done = subprocess.run(
        ["bash", "--login", "-e"],
        input="\n".join(lines),
        cwd=checkout,
        env=around,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_readme_is_typed_from_its_first_line_to_its_last(tmp_path, port):
    """In a login shell that has the system's PATH alone, in a checkout with a space and an umlaut.

    Only the libraries are not installed anew.
    """
    checkout = tmp_path / "ein Häuschen"
    copied(checkout, "semsim", "annotation", "data/demo", "docs")
    for path in [*ROOT.glob("*.txt"), *(ROOT / n for n in ("Makefile", "README.md", "LICENSE"))]:
        shutil.copy(path, checkout)
    shutil.copy(ROOT / "pyproject.toml", checkout)
    needed("make")
    around = bare(tmp_path, PORT=str(port), PYTHON=sys.executable)
    installed_as_made(checkout, around)
    first, *rest = [block for block in BLOCKS if block.page == "README.md"]
    assert first.text == "make run"
    log = tmp_path / "run.log"
    with typing(checkout, bare=around) as begin:
        serving = begin(first.text, log)
        until(lambda: answered(serving, around["PORT"], log), START_SECONDS)
    assert f"SemSim Studio: http://127.0.0.1:{around['PORT']}/studio/" in log.read_text()
    lines = [as_typed(block) for block in rest]
    assert lines[0] == ACTIVATES
    login_shell(checkout, around, *lines)
    written = re.findall(r"--out (\S+)", "\n".join(lines))
    assert written
    assert [name for name in written if not (checkout / name).exists()] == []


def installed_as_made(checkout, around):
    """What the Makefile does after the libraries: those of these tests stand for them."""
    here = environment(checkout)
    (here / PROGRAM).unlink()
    (line,) = re.findall(r"^\t@?\$\(BIN\)/(python -m pip .*--editable .*)$", MAKEFILE, re.MULTILINE)
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # hatchling is here already
    command = [here / "python", *shlex.split(line)[1:]]
    done = subprocess.run(
        command,
        cwd=checkout,
        env={**around, **offline},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (here / PROGRAM).is_file()
    (checkout / ".venv/run.stamp").touch()


def answered(serving, port, log):
    assert serving.poll() is None, log.read_text()
    return answers(f"http://127.0.0.1:{port}")


def as_typed(block):
    """A block as a shell takes it: code goes into `python`."""
    return f"python <<'TYPED'\n{block.text}\nTYPED" if block.kind == "python" else block.text


@pytest.fixture(scope="module")
def typed(clone, tmp_path_factory):
    """Each step → its exit code and what it printed; pages go on from `FIRST`, `BY_SHELL` last."""
    folder = tmp_path_factory.mktemp("typed")
    given, results = folder / "steps.json", folder / "results.json"
    steps = given_to_runner(given)
    around = {**os.environ, "PYTHONPATH": str(clone)}
    done = copies.run([str(RUNNER), str(given), str(results)], cwd=clone, env=around)
    assert done.returncode == 0, done.stderr
    found = [(*one, done.stderr) for one in json.loads(results.read_text())]
    return {**dict(zip(steps, found, strict=True)), **dict(typed_in_a_shell(clone, folder))}


def given_to_runner(file, left=()):
    """Write what `RUNNER` reads, without the pages `left` and `BY_SHELL`; return its steps."""
    steps = [one for one in TYPED if one[0] not in (BY_SHELL, *left) and not left_out(one[1])]
    steps.sort(key=lambda step: step[0] != FIRST)
    file.write_text(json.dumps([(page, shlex.split(s) if is_line(s) else s) for page, s in steps]))
    return steps


RUNNER = Path(__file__).with_name("readme_runner.py")
# Importing takes longer than most commands do, so other pages are typed in one process.
FIRST, BY_SHELL = "docs/tutorials/first-study.md", "docs/tutorials/deploy.md"


def typed_in_a_shell(checkout, folder):
    """Each step of `BY_SHELL`, its exit code, what it printed, and its errors; one login shell."""
    steps = [step for step in TYPED if step[0] == BY_SHELL]
    said = [folder / f"said-{n}" for n in range(len(steps))]
    typed = [
        f"{{ {step}\n}} < /dev/null > {told}.out 2> {told}.err && echo 0 || echo $?"
        for (_, step), told in zip(steps, said, strict=True)
    ]
    codes = login_shell(checkout, bare(folder), ACTIVATES, *typed).stdout.split()
    for step, code, told in zip(steps, codes, said, strict=True):
        printed, errors = (told.with_suffix(end).read_text() for end in (".out", ".err"))
        yield step, (int(code), printed, errors)


def is_line(step):
    """Whether a step is a line for a shell; else it is code."""
    return step.startswith((f"{PROGRAM} ", "python -m "))


def left_out(step):
    """Why a step is not run here; "" where it is."""
    if (PUBLISHED in step or "data/imports/paper" in step) and not SHARED.exists():
        return f"the published votes are not here ({PUBLISHED})"
    return next((why for word, why in NOT_RUN.items() if word in step), "")


@pytest.mark.parametrize(("page", "step"), TYPED)
def test_a_step_works(page, step, typed, clone):
    if not is_line(step):
        compile(step, page, "exec")
    if left_out(step):
        pytest.skip(left_out(step))
    code, printed, errors = typed[page, step]
    assert code == 0, (printed, errors)
    files = [clone / name for name in re.findall(r"--out (\S+)", step)]
    assert printed.strip() or files or not is_line(step)
    assert [path for path in files if not path.exists()] == []
    if "--headline" in step:
        check_cells(shlex.split(step)[-1], TEXTS[page], printed)


def test_every_example_is_run():
    files = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert files == {Path(path).name for path in EXAMPLES}
    modules = [path.removesuffix(".py").replace("/", ".") for path in EXAMPLES]
    run = [shlex.split(step)[2] for page, step in TYPED if step.startswith("python -m examples.")]
    assert run == modules


def printed_by(example, typed):
    return next(found[1] for (_, step), found in typed.items() if f"examples.{example}" in step)


def test_the_loss_of_the_example_is_followed(typed):
    seen = [float(s) for s in re.findall(r"SemSim ([\d.]+)", printed_by("semsim_as_loss", typed))]
    assert seen[-1] > 1.5 * seen[0] + 0.01


def test_the_attack_of_the_example_sees_less_of_what_is_defended(typed, clone):
    told = printed_by("attack_classifier", typed)
    psnr = dict(re.findall(r"^([a-z-]+)\S* +PSNR +([\d.]+) dB", told, flags=re.MULTILINE))
    assert float(psnr["none"]) > float(psnr["gradient-noise"]) + 3
    assert len(list((clone / "attacked").glob("*.png"))) == 4


def test_the_ranking_of_the_example_has_figures_and_a_report(typed, clone):
    assert "Human ceiling" in printed_by("votes_to_ranking", typed)
    assert len(list((clone / "ranking").glob("*.png"))) > 3
    assert "Simulated votes" in (clone / "ranking/report.html").read_text(encoding="utf-8")


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_PARTS = CONTRIBUTING.split("## Five additions\n")[1].split("\n## ")[0].split("\n### ")[1:]
ADDITIONS = {part.partition("\n")[0]: part for part in _PARTS}


def patched(text, lines):
    """`text` with the lines that begin with +, each before or after the one that stands beside it.

    A line that begins with a space is one of `text`, and the only one like it.
    """
    there = text.splitlines()
    for place, line in enumerate(lines):
        if line.startswith("+"):
            before = place + 1 < len(lines) and lines[place + 1].startswith(" ")
            beside = lines[place + (1 if before else -1)].removeprefix(" ")
            assert there.count(beside) == 1, f"{beside!r} is not one line of the file"
            there.insert(there.index(beside) + (not before), line.removeprefix("+"))
    return "\n".join(there) + "\n"


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A checkout with its tests, to which one thing after the other is added."""
    folder = tmp_path_factory.mktemp("grown")
    copied(folder, "semsim", "annotation", "tests", "data/demo")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def typed_where(checkout, line):
    """Return the output of a line of a page, typed in a checkout."""
    program, *words = shlex.split(line)
    words = words if program == "python" else [str(checkout / "app.py"), *words]
    done = copies.run(words, cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("title", ADDITIONS)
def test_an_addition_is_one_file_and_one_line_as_typed(grown, title):
    """Its file, its import and its line, and the commands that then know it, in a copy."""
    part = ADDITIONS[title]
    written, lines, typed = blocks_of("CONTRIBUTING.md", part)
    new, registry = re.findall(r"^\d\. (?:Write|In) `(\S+)`", part, flags=re.MULTILINE)
    assert [line[:1] for line in lines.text.splitlines()].count("+") <= 2  # an import, a line
    assert not (grown / new).exists()
    (grown / new).write_text(written.text + "\n", encoding="utf-8")
    text = (grown / registry).read_text(encoding="utf-8")
    text = patched(text, lines.text.splitlines())
    (grown / registry).write_text(text, encoding="utf-8")
    told = "".join(typed_where(grown, line) for line in typed.text.splitlines())
    assert re.search(r"^\.{4,}", told, flags=re.MULTILINE)  # tests ran


def test_a_new_defence_is_added_as_typed(grown):
    """Its file and its line of the tutorial, and the tests that then hold it, in a copy."""
    step = TEXTS["docs/tutorials/defence.md"].split("## 2. Write it")[1].split("\n## ")[0]
    (written,) = blocks_of("docs/tutorials/defence.md", step)
    place, line, registry, tests = re.findall(r"`([^`]*(?:\.py|,|-k [\w-]+))`", step)
    (grown / place).write_text(written.text + "\n", encoding="utf-8")
    text = (grown / registry).read_text(encoding="utf-8")
    before = '        "none": '
    text = text.replace(before, f"        {line}\n{before}", 1)
    (grown / registry).write_text(text, encoding="utf-8")
    assert re.search(r"^\.{2,}", typed_where(grown, tests), flags=re.MULTILINE)  # tests ran


NUMBERS = (ROOT / "docs/numbers.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:semsim|annotation)(?:\.\w+){2,})`", NUMBERS)))


def test_every_statistic_is_computed_where_the_page_says():
    assert [name for name in NAMED if not is_function(name)] == []


def is_function(name):
    """Whether there is something to call under that full name."""
    try:
        return callable(pkgutil.resolve_name(":".join(name.rsplit(".", 1))))
    except (ImportError, AttributeError):
        return False


def test_every_statistic_of_the_page_names_what_computes_it():
    parts = re.split(r"^### ", NUMBERS, flags=re.MULTILINE)[1:]
    assert len(parts) > 40
    assert [part.splitlines()[0] for part in parts if "→ `" not in part] == []


def check_cells(rule, text, printed):
    """The page's table of the paper's cells is what the command prints."""
    bare = re.sub(r"<!--.*?-->", "", text)
    told = re.findall(r"^\| the .*?" + r" \| ([\d.]+)" * 4 + r" \|$", bare, re.MULTILINE)
    cells = told[["released", "majority"].index(rule)]
    rows = {line.split()[0]: line.split()[2:4] for line in printed.splitlines() if line.split()}
    assert (*rows["PSNR"], *rows["MSE"]) == cells


def test_no_block_is_left_out():
    begun = re.compile(r"^ *``` *\S", flags=re.MULTILINE)
    fences = sum(len(begun.findall(text)) for text in TEXTS.values())
    assert fences == len(BLOCKS) + len(TAKEN_IN) + len(BY_HAND) + len(ENDPOINT)
    assert ["--with vlm" in block for block in ENDPOINT] == [True]
    assert {block.kind for block in BLOCKS} == {"sh", "text", "python", "powershell"}
    texts = [b.text for b in BLOCKS if b.kind == "text"]
    assert {*texts} == {DEPLOYED, SEVERAL_MACHINES, FEDERATED}
    assert {*TAKEN_IN} == {*EXAMPLES, NGINX, *NOT_TYPED}


def test_several_machines_are_set_up_as_typed(clone, tmp_path):
    """Each line in a shell of its own in the checkout; only the example's address is another."""
    campaign = toy_campaign(strategies=("none",), attacks=("invgrad:steps=3",))
    write_record(clone / "campaign.json", FORMAT, to_record(campaign))
    scheduler, worker, last = SEVERAL_MACHINES.splitlines()
    with typing(clone) as begin:
        begin(scheduler, tmp_path / "scheduler.log")
        until(lambda: address_in(tmp_path / "scheduler.log"), 60)
        address = address_in(tmp_path / "scheduler.log")
        begin(worker.replace(EXAMPLE, address), tmp_path / "worker.log")
        told = tmp_path / "last.log"
        done = begin(last.replace(EXAMPLE, address), told)
        assert done.wait(limit(300)) == 0, told.read_text()
    assert "3 ok / 0 failed (3 computed now, 0 done before)" in told.read_text()


def address_in(log):
    """Where the scheduler says it is; "" before."""
    found = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())
    return found[1] if found else ""


@pytest.mark.parametrize(("page", "line"), MADE)
def test_make_knows_the_target(page, line):
    dry = subprocess.run(
        [needed("make"), *shlex.split(line)[1:], "--dry-run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert dry.returncode == 0, dry.stderr


def test_every_command_explains_itself():
    group = get_command(front)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        assert command.name == name
        assert command.help
    assert group.get_command(None, "nonsense") is None


def test_links_in_the_readme_lead_somewhere():
    for target in re.findall(r"\]\((?!https://)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_readme_is_short():
    assert README.count("\n") <= 120


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_make_docs_builds_strictly():
    done = subprocess.run(
        [needed("make"), "docs", "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "mkdocs build --strict" in done.stdout


def test_the_site_has_every_page_and_fetches_nothing_from_elsewhere(site):
    tag = re.compile(r'<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)="?(?:https?:)?//[^>]*>')
    for name in NAVIGATION:
        page = (site / name).with_suffix(".html").read_text(encoding="utf-8")
        assert tag.findall(page) == [], name
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(.?(https?:|//)", path.read_text(encoding="utf-8")), path


def test_the_glossary_of_the_site_is_that_of_the_pages(site):
    words = glossary()
    page = (site / "glossary.html").read_text(encoding="utf-8")
    assert re.findall(r"<dt><strong>(.*?)</strong></dt>", page) == list(words)


@pytest.mark.parametrize("door", [front, study], ids=["semsim-studio", "study"])
def test_the_reference_has_every_command(door, site):
    page = (site / "reference/commands.html").read_text(encoding="utf-8")
    before = PROGRAM if door is front else f"{PROGRAM} study"
    names = get_command(door).list_commands(None)
    assert [name for name in names if f"<code>{before} {name}</code>" not in page] == []


def test_the_reference_has_the_json_of_every_command(site):
    page = (site / "reference/json.html").read_text(encoding="utf-8")
    for words in ("study list", "import table", "reproduce people", "train run", "job", "doctor"):
        assert f"<code>{PROGRAM} {words} --json</code>" in page
        for name, fields in parts_of(words.removeprefix("study ")).items():
            first = fields.removeprefix("object: ").split()[0]
            assert f"<td><code>{name}</code></td>" in page
            assert f"<code>{first}</code>" in page


def test_the_reference_has_the_studio_itself(site):
    page = (site / "reference/commands.html").read_text(encoding="utf-8")
    assert all(word in page for word in ("semsim-studio", "--root-path", "--access-log", "doctor"))
