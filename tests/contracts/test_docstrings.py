"""Every public function that takes or gives tensors or arrays says shapes, and what it raises.

Read from the source, so that nothing of it is imported. A method without words of its own has
those of the method it overrides.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path.relative_to(ROOT) for path in ROOT.glob("semsim/**/*.py"))
ARRAY = re.compile(r"\b(Tensor|ndarray)\b")
# (N,), (N, 3, H, W), (B, …), (2·C, k×k): or that it is of any shape, or of that of another thing.
_SIZE = r"(?:\*?[\w.]+'?|…)(?: ?[×+−·/] ?\w+)*"
SHAPE = re.compile(rf"\({_SIZE}(?:,\)|(?:, {_SIZE})+,?\))|\bshapes?\b")
POINTS = re.compile(r"\b(?:[Aa]s|[Ss]ee)(?: of| for)? `([\w.]+)`")


@dataclass(frozen=True, kw_only=True)
class Public:
    """A public function. bases: names of the classes its own class is made from."""

    path: Path
    name: str
    node: ast.FunctionDef
    bases: tuple[str, ...] = ()

    @property
    def has_arrays(self) -> bool:
        given = self.node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg]
        kinds = [*(one.annotation for one in every if one), self.node.returns]
        texts = [ast.unparse(kind) for kind in kinds if kind]
        return any(map(ARRAY.search, texts))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def public_in(body: list, path: Path, within: str = "", bases: tuple = ()) -> Iterator[Public]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_in(node.body, path, f"{node.name}.", above(node))
        elif isinstance(node, ast.FunctionDef) and is_public(node.name):
            yield Public(path=path, name=within + node.name, node=node, bases=bases)


def above(node: ast.ClassDef) -> tuple[str, ...]:
    return tuple(ast.unparse(base).rpartition(".")[2] for base in node.bases)


def is_public(name: str) -> bool:
    return name == "__call__" or not name.startswith("_")


@cache
def everything() -> dict[tuple[Path, str], Public]:
    return {(p.path, p.name): p for path in FILES for p in public_in(tree(path).body, path)}


@cache
def methods() -> dict[str, list[Public]]:
    """By `Class.method`, wherever the class is."""
    found: dict[str, list[Public]] = {}
    for one in everything().values():
        found.setdefault(one.name, []).append(one)
    return found


@cache
def classes() -> dict[str, tuple[str, ...]]:
    """The bases of every class, by its name."""
    nodes = (node for path in FILES for node in ast.walk(tree(path)))
    return {node.name: above(node) for node in nodes if isinstance(node, ast.ClassDef)}


def said(public: Public) -> str:
    """Its docstring with those it points to, or that of what it overrides."""
    own = ast.get_docstring(public.node)
    if own is not None:
        pointed = [one for name in POINTS.findall(own) for one in methods().get(name, [])]
        return "\n".join([own, *(said(one) for one in pointed if one != public)])
    method, waiting = public.name.rpartition(".")[2], [*public.bases]
    for base in waiting:
        if found := methods().get(f"{base}.{method}"):
            return said(found[0])
        waiting += classes().get(base, ())
    return ""


@cache
def private_in(path: Path) -> dict[str, ast.FunctionDef]:
    """The private functions of a file, by name."""
    return {
        node.name: node
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_")
    }


def raised(public: Public) -> set[str]:
    """The errors that it or the private functions of its file which it calls raise."""
    private = private_in(public.path)
    found, seen, waiting = set(), set(), [public.node]
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Raise) and node.exc is not None:
                found.add(ast.unparse(node.exc).partition("(")[0])
            name = getattr(node, "id", getattr(node, "attr", ""))
            if name in private and name not in seen:
                seen.add(name)
                waiting.append(private[name])
    return {one for one in found if one.endswith("Error") and one != "NotImplementedError"}


@cache
def with_arrays() -> list[Public]:
    return [one for one in everything().values() if one.has_arrays]


def lacking(public: Public) -> str:
    """What its docstring does not say; "" where it says all."""
    words = said(public)
    if not words:
        return "it has no docstring"
    if not SHAPE.search(words):
        return f"no shape: {words}"
    missing = {one for one in raised(public) if one not in words}
    return f"it raises {missing}: {words}" if missing else ""


def test_shapes_and_errors_are_said():
    found = [f"{one.path}:{one.name}: {told}" for one in with_arrays() if (told := lacking(one))]
    assert not found, "\n".join(found)


def test_there_are_many_and_the_rule_bites():
    assert len(with_arrays()) > 280
    assert SHAPE.search("images: (N, 3, H, W) in [0, 1]")
    assert SHAPE.search("values: (N,)")
    assert SHAPE.search("weights: (2·C, k×k, …)")
    assert not SHAPE.search("values (of which there are some) and others (N)")
    assert not SHAPE.search("a number (or several, as it is)")


# Shares of all docstrings of both halves; a ceiling only goes down.
QUESTION = re.compile(r"(What|Which|Where|How|Who|Whose|When|Why|Whether)\b")
SOMEBODY = re.compile(r"\b(some|no|any|every)(body|one)\b", re.IGNORECASE)
CEILINGS = ((QUESTION.match, 0.0), (SOMEBODY.search, 0.002))


def test_docstrings_begin_with_no_question_and_name_who_acts():
    both = [*FILES, *(path.relative_to(ROOT) for path in ROOT.glob("annotation/**/*.py"))]
    told = {
        f"{path}:{getattr(node, 'lineno', 1)}": text
        for path in both
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if (text := ast.get_docstring(node))
    }
    assert len(told) > 4000
    for is_found, ceiling in CEILINGS:
        found = [place for place, text in told.items() if is_found(text)]
        assert len(found) <= ceiling * len(told), found


SECTION = re.compile(r"(Args|Attributes):\n((?:    .*\n?)+)")
ENTRY = re.compile(r"^ {0,4}((?:\*{0,2}\w+, )*\*{0,2}\w+): ", flags=re.MULTILINE)


def parameters_of(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The parameters of a function, or what a class and those it is made from give a name."""
    if isinstance(node, ast.ClassDef):
        named = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        named |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
        named |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
        named |= {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        bases = [one for base in above(node) for one in nodes_of_classes().get(base, [])]
        return named.union(*(parameters_of(one) for one in bases if one is not node))
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {one.arg for one in every if one is not None}


@cache
def nodes_of_classes() -> dict[str, list[ast.ClassDef]]:
    found: dict[str, list[ast.ClassDef]] = {}
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def test_parameters_stand_in_sections_of_google_style_and_exist():
    both = [*FILES, *(path.relative_to(ROOT) for path in ROOT.glob("annotation/**/*.py"))]
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    sections, wrong = 0, []
    for path in both:
        for node in ast.walk(tree(path)):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            if text is None:
                continue
            known = parameters_of(node)
            for _, section in SECTION.findall(f"{text}\n"):
                sections += 1
                listed = {name for names in ENTRY.findall(section) for name in names.split(", ")}
                strange = {name.lstrip("*") for name in listed} - known
                wrong += [f"{path}:{node.lineno}: {strange} is no parameter"] if strange else []
            loose = [line for line in SECTION.sub("", f"{text}\n").splitlines() if line[:1] != " "]
            names = [one[1].split(", ") for line in loose if (one := ENTRY.match(line))]
            wrong += [
                f"{path}:{node.lineno}: {one} outside Args" for one in names if {*one} <= known
            ]
    assert sections > 800
    assert not wrong, "\n".join(wrong)
