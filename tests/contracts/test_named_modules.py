"""What docstrings and comments call `annotation.…` or `semsim.…` is there.

Read from the source, so that nothing of it is imported.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    ROOT / "app.py",
    *sorted(ROOT.glob("annotation/**/*.py")),
    *sorted(ROOT.glob("semsim/**/*.py")),
]
NAME = re.compile(r"(?<![\w./@-])(?:annotation|semsim)(?:\.[A-Za-z_]\w*)+")
TOLD = re.compile(rf"^(?!\s*(?:from [\w.]+ import |import [\w.]+$)).*{NAME.pattern}", re.MULTILINE)
IN_COMMENT = re.compile(f"#.*{NAME.pattern}")
FILE = re.compile(r"\.(?:py|toml|json|md|csv)$")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_every_module_and_name_that_is_told_of_is_there():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in FILES
        for line, name in named_in(path)
        if not is_there(name)
    ]
    assert wrong == []


def test_every_module_and_name_of_a_page_is_there():
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    told = {
        f"{page.relative_to(ROOT)} {name}": is_there(name)
        for page in pages
        for code in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))
        for name in (names(code) if NAME.fullmatch(code) else ())
    }
    assert len(told) > 40
    assert [one for one, there in told.items() if not there] == []


def test_a_name_that_is_not_there_would_be_found():
    there = ("semsim.cli", "annotation.spec.StudySpec", "annotation.store.Store.read")
    assert all(map(is_there, there))
    gone = ("semsim.nothing", "annotation.spec.Nothing", "annotation.store.Store.nothing")
    assert not any(map(is_there, gone))


def named_in(path: Path) -> Iterator[tuple[int, str]]:
    """Every name in a docstring or a comment, with the line that its text begins at."""
    source = path.read_text(encoding="utf-8")
    if not TOLD.search(source):  # nothing but its imports names a module
        return
    if IN_COMMENT.search(source):  # else tokens, which take long, have none
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield from ((token.start[0], name) for name in names(token.string))
    for node in ast.walk(tree(path)):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield from ((node.body[0].lineno, name) for name in names(text))


def names(text: str) -> list[str]:
    return [name for name in NAME.findall(text) if not FILE.search(name)]


def is_there(name: str) -> bool:
    """Whether that is a package, a module, or what one of them defines."""
    place, rest = ROOT, name.split(".")
    while rest and (place / rest[0]).is_dir():
        place /= rest.pop(0)
    if rest and (place / f"{rest[0]}.py").is_file():
        return defines(place / f"{rest[0]}.py", tuple(rest[1:]))
    return defines(place / "__init__.py", tuple(rest))


def defines(path: Path, attributes: tuple[str, ...]) -> bool:
    if not path.is_file():
        return False
    scope: ast.AST = tree(path)
    for attribute in attributes:
        found = defined(scope)
        if attribute not in found:
            return False
        scope = found[attribute]
        if not isinstance(scope, ast.ClassDef):  # of a value nothing more can be read here
            return True
    return True


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def defined(scope: ast.AST) -> dict[str, ast.AST]:
    """What a module or a class defines, with what it is; all that lies in its functions as well."""
    found: dict[str, ast.AST] = {}
    for node in ast.walk(scope):
        if isinstance(node, DOCUMENTED) and not isinstance(node, ast.Module):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id if isinstance(node, ast.Name) else node.attr, node)
        elif isinstance(node, ast.alias):
            found.setdefault((node.asname or node.name).partition(".")[0], node)
    return found
