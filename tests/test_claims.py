"""What pages show is what the files of results have, and the cheap results come out again."""

import json
import math
import re
import shutil
import subprocess
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from helpers import ROOT
from made_demo import demo_in
from written_keys import written

from benchmarks import cheap_claims, claims, coverage, headlines, measuring
from benchmarks.claims import RESULTS, SHOWN, Claim, filled, keep, kept
from benchmarks.papers import PARTS


def test_every_number_on_a_page_is_that_of_its_file():
    differing = [
        str(path.relative_to(ROOT))
        for path in claims.pages()
        if filled(text := path.read_text(encoding="utf-8")) != text
    ]
    assert differing == [], "python -m benchmarks.claims writes them"
    assert sum(len(SHOWN.findall(path.read_text("utf-8"))) for path in claims.pages()) > 200


@pytest.mark.parametrize("name", cheap_claims.MAKERS)
def test_a_cheap_result_comes_out_again(name, tmp_path, monkeypatch):
    monkeypatch.setattr(cheap_claims, "demo_in", demo_in)
    if name == "published" and not cheap_claims.PUBLISHED.exists():
        pytest.skip(f"the published votes are not here ({cheap_claims.PUBLISHED.name})")
    command, make = cheap_claims.MAKERS[name]
    keep(name, command, make(), tmp_path)
    found, before = kept(name, tmp_path), kept(name)
    assert set(found) == set(before)
    other = [key for key, one in found.items() if not _alike(one, before[key])]
    assert other == [], "python -m benchmarks.claims --make writes them"


def _alike(one: Claim, other: Claim) -> bool:
    pairs = ((one.value, other.value), (one.low, other.low), (one.high, other.high))
    numbers = [(a, b) for a, b in pairs if isinstance(a, float) and isinstance(b, float)]
    near = all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in numbers)
    return near and one.n == other.n and all(a == b for a, b in pairs if (a, b) not in numbers)


@pytest.mark.parametrize(
    ("form", "written"),
    [
        (".2f", "−0.12"),
        (".2f[]", "−0.12 [−0.50, 0.25]"),
        (".1fto", "−0.5 to 0.2"),
        (".0%", "−12%"),
        (".2fof", "−0.12 of 3"),
    ],
)
def test_a_page_takes_a_number_as_it_asks(tmp_path, form, written):
    keep("a", "a command", {"b": Claim(-0.125, -0.5, 0.25, "3 models")}, tmp_path)
    assert filled(f"x <!--=a b {form}-->old<!--/-->.", tmp_path) == (
        f"x <!--=a b {form}-->{written}<!--/-->."
    )


@pytest.mark.parametrize(
    "row",
    [
        "| x, 2 of 3 | 0.50 | 11.5 ± 2.9, 1 blew up |",
        "| R5 at 1,000,000 | ×1.04 (−0.3, +2) | `--runs 3` of CNN4 {a} |",
        "| a \\| b | 1.2e-22 | |",
    ],
)
def test_a_page_takes_a_whole_table(tmp_path, row):
    lines = ["| x | y | |", "| --- | --- | --- |", row]
    keep("a", "a command", {"b": Claim(lines, run="today")}, tmp_path)
    page = "Before.\n\n<!--=a b table-->\n\n| old |\n\n<!--/-->\n"
    right = page.replace("| old |", "\n".join(lines))
    assert filled(page, tmp_path) == right
    assert filled(right, tmp_path) == right
    assert filled("<!--=a b run-->x<!--/-->", tmp_path) == "<!--=a b run-->today<!--/-->"
    with pytest.raises(LookupError, match=r"asks for '\.2f'"):
        filled("<!--=a b .2f-->1<!--/-->", tmp_path)


def test_a_table_is_kept_as_numbers_and_the_words_around_them(tmp_path):
    keep(
        "a", "a", {"b": Claim(["| x | y |", "| --- | --- |", "| CNN4, 2 | 0.50 of −3 |"])}, tmp_path
    )
    (row,) = json.loads((tmp_path / "a.json").read_text())["values"]["b"]["rows"]
    assert row == ["CNN4, 2", ["{:.2f} of {:d}", 0.5, -3]]


def test_a_part_of_a_file_is_made_anew_by_a_command_of_its_own(tmp_path, monkeypatch):
    keep("a", "whole", {"b": Claim(1.0), "c": Claim(2.0)}, tmp_path)
    monkeypatch.setattr(claims, "code", lambda: "later")
    keep("a", "part", {"b": Claim(3.0)}, tmp_path, part=True)
    told = json.loads((tmp_path / "a.json").read_text())
    assert told["command"] == "whole"
    assert told["values"] == {
        "b": {"value": 3.0, "commit": "later", "command": "part"},
        "c": {"value": 2.0},
    }


def test_the_head_of_a_file_is_what_made_most_of_it(tmp_path, monkeypatch):
    keep("a", "first", {"b": Claim(1.0), "c": Claim(2.0), "d": Claim(3.0)}, tmp_path)
    monkeypatch.setattr(claims, "code", lambda: "later")
    keep("a", "then", {"b": Claim(4.0), "c": Claim(5.0)}, tmp_path, part=True)
    told = json.loads((tmp_path / "a.json").read_text())
    assert (told["command"], told["commit"]) == ("then", "later")
    assert set(told["values"]["b"]) == {"value"}
    assert told["values"]["d"]["command"] == "first"


def test_a_page_that_asks_for_what_no_file_has_is_refused(tmp_path):
    keep("a", "a command", {"b": Claim(1.0)}, tmp_path)
    with pytest.raises(LookupError, match="'c'; it has b"):
        filled("<!--=a c .2f-->1<!--/-->", tmp_path)
    with pytest.raises(LookupError, match="interval"):
        filled("<!--=a b .2f[]-->1<!--/-->", tmp_path)


def test_a_headline_meets_its_target_or_misses_it():
    """Of a number, and of a share of its count."""
    rate, some = Claim(0.0622, n="4,000 studies"), Claim(38, n="40 batches")
    assert headlines.at_most(0.07)([rate])
    assert not headlines.at_most(0.06)([rate])
    assert headlines.share_at_least(0.95)([some])
    assert not headlines.share_at_least(0.96)([some])
    cells = [line.split(" | ") for line in headlines.table()]
    ends = {row[2].rpartition(": ")[2] for row in cells[2:]}
    assert ends <= {"met", "missed", "–"}
    assert all(row[3][0].isdigit() and row[4].startswith("`") for row in cells[2:])


def test_a_result_keeps_its_commit_until_it_changes(tmp_path, monkeypatch):
    commits = []
    for commit, value in (("one", 1.0), ("two", 1.0), ("three", 2.0)):
        monkeypatch.setattr(claims, "code", lambda commit=commit: commit)
        keep("a", "a command", {"b": Claim(value)}, tmp_path)
        commits.append(json.loads((tmp_path / "a.json").read_text())["commit"])
    assert commits == ["one", "one", "three"]


FILES = sorted(RESULTS.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_results_has_the_one_form(path, tmp_path):
    """Numbers, tables of numbers, one writer, a command and a commit."""
    whole = json.loads(path.read_text("utf-8"))
    assert set(whole) == {"command", "commit", "values"}
    assert whole["command"]
    assert whole["commit"]
    assert re.search(r"/(work|tmp|home)/", str(whole)) is None
    found = kept(path.stem)
    assert [key for key, one in found.items() if isinstance(one.value, str)] == []
    keep(path.stem, whole["command"], found, tmp_path)
    again = json.loads((tmp_path / path.name).read_text("utf-8"))
    assert again["values"] == whole["values"], "a hand wrote it"


# Keys of results by file, where the code of the command does not spell them.
MADE = {
    "idle": r"share|least|most",
    "people": r"table|compare\.(cpu|pace)|[\w-]+\.[\w:.-]+\.(soft_accuracy|rho|tau|auc)",
    "unseen": r"(accuracy|lead)\.[\w.]+",
    "jury": r"table|networks|[a-z-]+\.(rho_hard|kappa|right|confusions)",
    "gain-symbols": r"[\w-]+\.(un)?trained\.(\w+(\.(tv|curvature))?)",
    **{f"coverage-{part}": r".*" for part in coverage.PARTS},
}


def _makes(name: str, key: str, command: str) -> bool:
    """True where a command of the project writes this result."""
    if name in cheap_claims.MAKERS:
        return True  # test_a_cheap_result_comes_out_again compares the keys
    parts = [part.where for part in PARTS.values() if part.paper == name]
    if parts:
        return any(key in where for where in parts)
    module = re.match(r"python -m (benchmarks\.\w+)", command)
    patterns = written(module[1]) if module else []
    return any(re.fullmatch(one, key) for one in [*patterns, MADE.get(name, "(?!)")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_command_of_the_project_writes_every_result(path):
    """No hand types a number: each has a command and the commit that made it."""
    whole = json.loads(path.read_text("utf-8"))
    assert [key for key in whole["values"] if not _makes(path.stem, key, whole["command"])] == []
    commands = {whole["command"], *(one.get("command") for one in whole["values"].values())}
    for command in commands - {None}:
        module = re.match(r"python -m (benchmarks\.\w+)", command)
        if module:
            assert (ROOT / f"{module[1].replace('.', '/')}.py").is_file(), command
        else:
            assert re.match(r"semsim-studio |make \w|semsim\.", command), command
    form = rf"({claims.ADDED})?[0-9a-f]{{8,12}}|[0-9a-f]{{8,12}}(\+\w+)?"
    assert [one for one in stamps(path) if not re.fullmatch(form, one)] == []


def stamps(path: Path) -> set[str]:
    whole = json.loads(path.read_text("utf-8"))
    return {whole["commit"], *(one.get("commit") for one in whole["values"].values())} - {None}


def commit_of(stamp: str) -> str:
    return stamp.removeprefix(claims.ADDED).partition("+")[0]


def git(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)


@cache
def made_at(commit: str) -> datetime:
    return datetime.fromisoformat(git("log", "-1", "--format=%aI", commit).stdout.strip())


def needs_history() -> None:
    if shutil.which("git") is None or git("rev-parse", "HEAD").returncode:
        pytest.skip("no history of commits is here")
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("the history of commits is shallow")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_commit_of_a_result_is_one_of_this_history(path):
    needs_history()
    commits = {one: commit_of(one) for one in stamps(path)}
    known = {
        one: git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0
        for one, commit in commits.items()
    }
    assert [one for one, is_known in known.items() if not is_known] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_result_was_measured_before_its_commit_was_made(path):
    """A stamp that is younger than its run is that of who added the result, and states so."""
    needs_history()
    whole = json.loads(path.read_text("utf-8"))
    younger = []
    for key, one in whole["values"].items():
        stamp = one.get("commit", whole["commit"])
        when = re.match(r"(\d+ \w+ \d{4}).*?(\d\d:\d\d) UTC", one.get("run", ""))
        if when is None or stamp.startswith(claims.ADDED):
            continue
        measured = datetime.strptime(f"{when[1]} {when[2]} +0000", "%d %B %Y %H:%M %z")
        if made_at(commit_of(stamp)) >= measured + timedelta(minutes=1):
            younger.append(f"{key}: {stamp}")
    assert younger == [], f"measure it anew, or write {claims.ADDED!r} before the commit"


def test_a_result_of_a_branch_is_stamped_with_a_commit_that_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "ROOT", tmp_path)
    assert measuring.code() == "of no commit"
    as_somebody = ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "a")
    for words in (("init", "-qb", "main"), (*as_somebody, "--allow-empty")):
        assert git(*words, folder=tmp_path).returncode == 0
    landed = git("rev-parse", "HEAD", folder=tmp_path).stdout[:12]
    assert measuring.code() == landed
    git("switch", "-qc", "branch", folder=tmp_path)
    (tmp_path / "a").write_text("a")
    git("add", "a", folder=tmp_path)
    git(*as_somebody, folder=tmp_path)
    assert re.fullmatch(landed + r"\+\w{8}", measuring.code())
    git("branch", "-qD", "main", folder=tmp_path)
    assert measuring.code() == git("rev-parse", "HEAD", folder=tmp_path).stdout[:12] != landed


# Numbers that rest on no units: keys by file, and why.
WITHOUT_N = {
    "demo": (r"shuffled\.n", "a count of units"),
    "gain-symbols": (r".+\.(tv|curvature)", "settings that were chosen"),
    "imprint": (
        r"draws|pictures|bins|expected",
        "settings of the attack, and what follows of them",
    ),
    "map": (r"cells", "a count of units"),
    "sizes": (r".+", "files that are installed"),
    "tests": (r"minutes|cpu", "the table has the runs"),
    "tests-all": (r"minutes|cpu", "the table has the runs"),
    "threats": (r"originals|seeds|cells", "counts of units"),
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_number_has_the_count_of_what_it_rests_on(path):
    form, _ = WITHOUT_N.get(path.stem, ("(?!)", ""))
    lacking = [
        key
        for key, one in kept(path.stem).items()
        if not isinstance(one.value, list)
        and not re.fullmatch(r"[\d,]+ \D.*", one.n)
        and not re.fullmatch(form, key)
    ]
    assert lacking == []


def test_a_typed_result_has_no_command():
    command = "python -m benchmarks.statistics --only models"
    assert _makes("few-models", "least-coverage", command)
    assert not _makes("few-models", "far-out", command)
    assert not _makes("a file of my own", "least-coverage", "by hand")


def test_every_file_of_results_is_shown_on_a_page():
    shown = {
        found[0] for path in claims.pages() for found in SHOWN.findall(path.read_text("utf-8"))
    }
    unused = {path.stem for path in FILES} - shown - headlines.names()
    assert {one for one in unused if not one.startswith("coverage-")} == set()


# What pages may type, by page ("": every page), and why: no command makes it.
CONSTANTS = {
    "": (
        (r"\d+\.\d+\.\d+(\.\d+)?|Python 3\.\d+|Apache-2\.0", "versions, and addresses of machines"),
        (r"arXiv:\d{4}\.\d{5}", "numbers of papers"),
        (r"\b(90|95|97\.5)\s?%", "levels of intervals and ranges"),
        (r"\bp [=<>≤] 0?\.05", "the level α of tests"),
        (r"[≤≥] ×?\d+(\.\d+)?( (ms|s|dB|MB|GB|%))?", "targets, set before anything is measured"),
        (r"[Ff]ive\s+minutes in\s+the\s+studio", "a heading"),
        (
            r"20,00[01] pictures,?( and| or, one byte more than)? 4 GB|than 4 GB",
            "limits of an upload",
        ),
        (r"more than (the )?5\s+points", "the loss of accuracy from which a system is invalid"),
    ),
    "README.md": ((r"to 1e-10", "the tolerance of a test"),),
    "CONTRIBUTING.md": ((r"two cores(,| and) 24 GiB", "the machine"),),
    "benchmarks/tables.md": (
        (r"met: 4 dB with tanh", "a target"),
        (r"at\smost 5 CPU s", "a target"),
        (r"14 models and 600 originals, 1,000 swaps", "the input"),
        (r"(people of|r =|noise is)(\s(0\.\d|\d|and),?)+", "settings of simulations"),
        (r"the wanted 0\.06", "a target"),
    ),
    "data/demo/README.md": (
        (r"65%", "a training ends there, a setting"),
        (r"Chance is 2%", "1 / 47 classes"),
    ),
    "docs/how-to/accounts.md": (
        (
            r"seven days|(30|90|180) days|half\s+a\s+minute|ten minutes",
            "limits of sessions and sign-in",
        ),
    ),
    "docs/how-to/dp-sgd.md": ((r"\| 0\.1 \| 0\.01", "noises, settings"),),
    "docs/how-to/machines.md": ((r"half a minute", "after which a worker counts as lost"),),
    "docs/how-to/places.md": ((r"\(10 MB\)", "the size at which a log is put aside"),),
    "docs/how-to/study.md": ((r"some minutes", "an estimate, of no run"),),
    "docs/how-to/train.md": (
        (r"rate 0\.1|rate 0\.05", "rates of the presets"),
        (r"half an hour, but", "a limit"),
    ),
    "docs/map.md": ((r"rate 0\.01|65%", "settings of the trainings"),),
    "docs/numbers.md": (
        (r"another 5% of the votes", "the step between two looks"),
        (r"1\.96", "the 97.5% quantile of the normal distribution"),
        (r"\*, 11\.[35]\.", "sections of books"),
        (r"\(count \+ 0\.5\)|σ 1\.5|c₁ = 0\.01², c₂ = 0\.03²|0\.5 and 0\.25", "parts of a formula"),
        (r"1\.5 times|below 0\.[29]", "limits of a rule"),
    ),
    "docs/papers.md": (
        (r"^\|(\\.|[^|\\])*\|", "the first column is what the paper says"),
        (r"Section 4\.4 as metrics \(τ 0\.70 and 0\.50\)", "printed in the paper"),
        (r"59 to 61 dB", "printed in the paper"),
    ),
    "docs/people.md": ((r"CC BY(-NC-SA)? 4\.0", "names of licences"),),
    "docs/tutorials/deploy.md": (
        (r"at most 2 GB|within 20 s", "limits of the product"),
        (r"some minutes", "an estimate, of no run"),
    ),
    "docs/tutorials/first-study.md": (
        (r"takes half an hour|about\s+five minutes", "an estimate of people's time, of no run"),
    ),
}
# Typed is a decimal, power, share, factor, or what has a unit, in figures or words.
# No result: a product of sizes (32 × 32, 14 strategies × 8 attacks), a bare count, an ordinal.
ONE = r"one|two|three|four|five|six|seven|eight|nine"
TEEN = r"ten|eleven|twelve|(thir|four|fif|six|seven|eigh|nine)teen"
TENS = rf"(twen|thir|for|fif|six|seven|eigh|nine)ty(-({ONE}))?|hundred"
COUNT = rf"(\d+(,\d{{3}})*|{ONE}|{TEEN}|{TENS})"
UNIT = r"(core-|CPU[- ])?(days?|hours?|minutes?|seconds?|s)|ms|[GMk]i?B|dB|points|times as \w+"
NUMBER = re.compile(
    r"\d\.\d|(?<![\w.])\.\d|\d+e[-−+]?\d+\b|\d\s?%|(?<!\w)×\d|\d\s?×(?!\s?\d)"
    rf"|\b(?!one\b){COUNT}\s+(out\s+)?of\s+((the|its|all)\s+)?{COUNT}\b"
    rf"|\b({COUNT}|half an?|some)[\s-]({UNIT})\b(?!-)|\ban? (hour|minute)\b",
    re.IGNORECASE,
)
# Code is what a reader types; its comments, and what begins with a number, are sentences.
CODE = re.compile(
    r"^( *)```.*?^\1```$|(?<=\n\n)( {4}[^\n]*\n)+|(`+).*?\3|\]\([^)]*\)", re.MULTILINE | re.DOTALL
)


def _told(code):
    inside = code[0].strip("`")
    if code[3] and re.match(r"(\w+ ?[=<>≤≥≈] ?)?[−-]?\S?" + f"({NUMBER.pattern})", inside):
        return inside
    return "" if code[3] else "\n".join(re.findall(r"\s#\s.*", inside))


@pytest.mark.parametrize(
    "typed",
    [
        *("needs 7 GB of disk", "takes 2,255 core-days", "about five core-days", "21 %", "0.4"),
        *("4 dB ahead", "in 41 seconds", "within half a second", "three hours", "9 of 16", "×1.3"),
        *("twenty minutes of one core", "12 CPU s", "36 MiB", "four times as fast"),
        *("fifty minutes", "seven of ten", "Seven of the ten", "an AUC of .93", "within 1e-11"),
        *("took ×62 less", "is 62× slower", "is 62 × slower", "`0.93`", "`ρ = .93 [.5, .99]`"),
        *("`−4.6 dB`", "`7 of 10` pictures", "twenty-one hours", "an hour and a half"),
        "\n\n    make x   # about 50 minutes more\n",
    ],
)
def test_a_typed_result_is_seen(typed):
    assert NUMBER.search(CODE.sub(_told, typed))


@pytest.mark.parametrize(
    "constant",
    [
        *(
            "14 strategies × 8 attacks",
            "pictures of 32 × 32 pixels",
            "a second terminal",
            "Table 3",
        ),
        *("`--lr 0.05`", "`update:lr=0.01`", "`13e6ce47`", "twelve originals", "one of them"),
        *("[the paper](https://example.org/1.5)", "\n\n    make x ARGS=0.5   # quick\n"),
    ],
)
def test_a_constant_is_no_result(constant):
    assert NUMBER.search(CODE.sub(_told, constant)) is None


def _typed(path):
    """Return a page without code and without numbers from files, but with its lists of parts."""
    text = path.read_text("utf-8")
    return CODE.sub(_told, SHOWN.sub(lambda found: found[4] if found[3] == "list" else "", text))


@pytest.mark.parametrize("path", claims.pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_line_has_a_number_that_stands_in_no_file(path):
    """Decimals, per cents, "N of M" and what has a unit, in sentences and tables."""
    bare = _typed(path)
    for pattern, _ in (*CONSTANTS[""], *CONSTANTS.get(str(path.relative_to(ROOT)), ())):
        bare = re.sub(pattern, "", bare, flags=re.MULTILINE)
    outside = [bare[max(0, one.start() - 40) : one.end() + 20] for one in NUMBER.finditer(bare)]
    assert outside == [], "a result goes into a file, a constant into CONSTANTS"


def test_every_constant_stands_on_its_page():
    texts = {str(path.relative_to(ROOT)): _typed(path) for path in claims.pages()}
    for page, constants in CONSTANTS.items():
        text = texts[page] if page else "\n".join(texts.values())
        gone = [one for one, _ in constants if not re.search(one, text, re.MULTILINE)]
        assert gone == [], page
