"""No test waits for a fixed time, and each limit of waiting comes from `limit` of helpers.py.

Who needs a number all the same adds it to `ALLOWED`, with a reason.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SLEEPS = {"sleep"}  # of time, asyncio and anyio
WAITS = {"wait", "join", "wait_for"}
TIMEOUTS = {"timeout", "connect_timeout"}
IN_A_PROGRAM = re.compile(r"(?:\bsleep\(|\bsetTimeout\(.*,|\.timeout\()\s*0*[1-9.][\d_.e]*\s*\)")
# What stands in a file that waits; to read a file as a program takes a hundred times as long.
MAY_WAIT = re.compile(r"sleep\(|wait|timeout|Timeout|join\(\s*[\d(.]")
# File → what stands there → why it needs no `limit`.
ALLOWED = {
    "helpers.py": {"time.sleep(0.02)": "`until` looks again and again"},
    "programs.py": {"timeout=5": "it runs before anything is installed, so without helpers.py"},
    "e2e/rules.py": {"page.wait_for_timeout(500)": "it looks again at what is being laid out"},
    "annotation/web/test_connections.py": {"stop.wait(1.0)": "one byte a second is what it sends"},
    "contracts/test_talk.py": {"sleep(600)": "a program that does not end by itself"},
    "semsim/base/jobs/test_folders.py": {
        "sleep(0.01)": "a job that works until it is told to stop"
    },
    "test_bench.py": {"sleep(0.02)": "a program of its own, which looks again and again"},
}


def number(node: ast.AST | None) -> bool:
    """Tell whether a node is a number above 0, as it stands or computed from such."""
    if isinstance(node, ast.BinOp):
        return number(node.left) and number(node.right)
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def programs(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each string; what is put into a text when it runs is x."""
    parts = set()
    for node in ast.walk(tree):  # a text before its parts
        if isinstance(node, ast.JoinedStr):
            parts |= {id(one) for one in node.values}
            yield (
                node.lineno,
                "".join(
                    str(one.value) if isinstance(one, ast.Constant) else "x" for one in node.values
                ),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = () if id(node) in parts else [(node.lineno, node.value)]
            yield from found


def fixed_waits(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each wait for a fixed time, or within one, in a program or its strings."""
    for line, text in programs(tree):
        for found in IN_A_PROGRAM.finditer(text):
            yield line + text[: found.start()].count("\n"), found.group()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name, first = name_of(node), node.args[0] if node.args else None
        at = node.args[1] if name == "wait_for" and len(node.args) > 1 else first
        if (
            name == "wait_for_timeout"
            or (name in SLEEPS and number(first))
            or (name in WAITS | TIMEOUTS and number(at))
        ):
            yield node.lineno, ast.unparse(node)
        for keyword in node.keywords:
            if keyword.arg in TIMEOUTS and number(keyword.value):
                yield node.lineno, ast.unparse(keyword)


def test_no_test_waits_for_a_fixed_time_or_within_one():
    files = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    del files[Path(__file__).resolve()]  # which has them to try itself
    found = {
        (path.relative_to(TESTS).as_posix(), line, text)
        for path, code in files.items()
        if MAY_WAIT.search(code)
        for line, text in fixed_waits(ast.parse(code))
    }
    allowed = {(file, text) for file, texts in ALLOWED.items() for text in texts}
    wrong = sorted(one for one in found if (one[0], one[2]) not in allowed)
    assert not wrong, "\n".join(f"tests/{file}:{line}: {text}" for file, line, text in wrong)
    assert allowed - {(file, text) for file, _, text in found} == set()  # none that is gone


@pytest.mark.parametrize(
    "line",
    [
        "time.sleep(0.5)",
        "await asyncio.sleep(2 * 60)",
        "page.wait_for_timeout(500)",
        "page.evaluate('new Promise((go) => setTimeout(go, 200))')",
        "page.evaluate(f'setTimeout(() => {go}(1, 2), 200)')",
        "program = 'import time; time.sleep(3)'",
        "event.wait(60)",
        "thread.join(20)",
        "asyncio.wait_for(coming, 20)",
        "asyncio.wait([coming], timeout=2.0)",
        "asyncio.timeout(60)",
        "connect(connect_timeout=5)",
    ],
)
def test_a_fixed_wait_is_found(line):
    assert MAY_WAIT.search(line)
    (found,) = fixed_waits(ast.parse(f"async def test():\n    {line}"))
    assert found[0] == 2


@pytest.mark.parametrize(
    "line",
    [
        "time.sleep(0)",
        "event.wait(limit(60))",
        "process.wait(timeout=START_SECONDS)",
        "words.join([1, 2])",
        "until(ready, 20)",
        "page.evaluate('new Promise((go) => setTimeout(go))')",
        "page.evaluate(f'setTimeout(go, {limit(200)})')",
    ],
)
def test_what_is_no_fixed_wait_is_not(line):
    assert not [*fixed_waits(ast.parse(f"async def test():\n    {line}"))]
