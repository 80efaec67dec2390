"""The shape of the code is a test: which way imports point, and where each library may be used."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path.relative_to(ROOT)
    for path in [*ROOT.glob("semsim/**/*.py"), *ROOT.glob("annotation/**/*.py"), ROOT / "app.py"]
)
FILES = frozenset(SOURCES)
# Library → where it may be imported: path prefixes.
ALLOWED = {
    "gradio": ("semsim/base/pages_library.py",),
    "sqlalchemy": ("annotation/store/",),
    "alembic": ("annotation/store/",),
    "fsspec": ("semsim/base/storage/remote.py",),
    "distributed": ("semsim/grid/",),
    "concurrent.futures.ProcessPoolExecutor": ("semsim/grid/subprocess_worker.py",),
    "torch": ("semsim/",),
    "torchvision": ("semsim/",),
    "semsim": ("semsim/", "app.py"),
    "annotation": ("annotation/", "app.py"),
    "flwr": ("semsim/systems/federated/flower/apps.py",),
    "cryptography": ("semsim/systems/federated/",),
    "openai": ("annotation/study/endpoint.py",),
    "matplotlib": ("semsim/datasets/", "semsim/ui/", "semsim/reporting/", "semsim/systems/audit/"),
}
# Pages are laid out here and nowhere else.
PAGES = re.compile(r"\w+/ui/.*|semsim/systems/\w+/page\.py|app\.py")
# Rooms from low to high, a floor a line. A module imports from its own room and from lower floors;
# those of the lowest floor of a package import each other as well.
FLOORS = {
    "semsim": (
        "base types images device weights layer_graph",
        "grid sets",
        "datasets defences",
        "targets",
        "attacks metrics",
        "reporting distractors",
        "campaign importers",
        "people",
        "learning",
        "comparison lab",
        "api",
        "systems torchmetrics",
        "papers",
        "cli ui",
        "__main__",
    ),
    "annotation": (
        "errors texts tasks spec domain images",
        "votes design formats",
        "store",
        "accounts study",
        "web",
        "cli ui",
        "__main__",
    ),
}
# What still points up, and where it is to go; a row that is no longer true fails.
KNOWN: set[tuple[str, str]] = set()
BASE = "semsim.base"  # the one part of `semsim` that `annotation` imports
MOST_FILES = {"semsim": 7, "annotation": 7}  # beside the folders
MOST_CIRCLES = 2  # of modules that import each other, at the top or in a function
MOST_LONELY = 23  # files that one file of their folder imports, and no other


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below `node`, without looking into expressions: they import nothing."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for one in getattr(node, name, ()):
            yield one
            yield from statements(one)


def carried_out(node: ast.AST) -> Iterator[ast.AST]:
    """The same without the blocks that type checkers alone read."""
    for_types = {
        id(inner)
        for one in statements(node)
        if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"
        for inner in statements(one)
    }
    return (one for one in statements(node) if id(one) not in for_types)


@cache
def imports(path: Path) -> set[str]:
    """Every module a file imports, at its top or inside a function."""
    found = set()
    for node in statements(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def room_of(path: Path) -> str:
    return path.parts[1].removesuffix(".py")


def floors(package: str) -> dict[str, int]:
    return {room: floor for floor, line in enumerate(FLOORS[package]) for room in line.split()}


def arrows() -> set[tuple[str, str, Path]]:
    """(room, room it imports from, file) for every import between two rooms of a package."""
    found = set()
    for path in SOURCES:
        package = path.parts[0]
        if package in FLOORS and room_of(path) != "__init__":
            rooms = {m.split(".")[1] for m in imports(path) if m.startswith(f"{package}.")}
            found |= {(room_of(path), room, path) for room in rooms - {room_of(path)}}
    return found


def test_libraries_are_used_only_where_they_belong():
    elsewhere = [
        f"{path} must not import {library}"
        for path in SOURCES
        for library, places in ALLOWED.items()
        if any(within(module, library) for module in imports(path) if not within(module, BASE))
        and not path.as_posix().startswith(places)
    ]
    assert elsewhere == []


def test_pages_are_laid_out_in_rooms_of_pages_alone():
    drawing = [one for one in SOURCES if "semsim.base.pages_library" in imports(one)]
    assert drawing
    assert [one for one in drawing if not PAGES.fullmatch(one.as_posix())] == []


def test_the_base_imports_neither_half_and_no_torch():
    found = {
        module
        for path in SOURCES
        if path.as_posix().startswith("semsim/base/")
        for module in imports(path)
        if not within(module, BASE)
    }
    assert not {m for m in found if within(m, "semsim") or within(m, "annotation")}
    base = [path for path in SOURCES if path.as_posix().startswith("semsim/base/")]
    names = [".".join(path.with_suffix("").parts) for path in base if path.stem != "__init__"]
    code = f"import sys; {'; '.join(f'import {name}' for name in names)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "torch" not in done.stdout.split()


def test_pages_do_without_what_holds_40_mb():
    """SciPy imports them at their first use, for ranks and a root that a few lines find."""
    rooms = ("annotation/", "semsim/base/", "semsim/comparison/", "semsim/reporting/", "semsim/ui/")
    served = [one for one in SOURCES if one.as_posix().startswith(rooms)]
    heavy = re.compile(r"\bscipy(\.| import )(stats|optimize)\b[^`]")
    assert len(served) > 100
    assert [str(one) for one in served if heavy.search((ROOT / one).read_text("utf-8"))] == []


def test_no_path_is_computed_from_the_place_of_a_module():
    """`files_of` finds what comes with a package, `base.places` everything else."""
    named = [path for path in SOURCES if "__file__" in (ROOT / path).read_text(encoding="utf-8")]
    assert named == []


@pytest.mark.parametrize("package", FLOORS)
def test_every_room_has_a_floor(package):
    rooms = {room_of(path) for path in SOURCES if path.parts[0] == package} - {"__init__"}
    assert rooms == set(floors(package))


def test_the_page_of_the_house_names_every_room():
    page = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    drawn = {word for line in page.splitlines() if line.startswith("    ") for word in line.split()}
    folders = {
        path.parts[1]
        for path in SOURCES
        if path.parts[0] in FLOORS and len(path.parts) > 2 and path.parts[1] != "torchmetrics"
    }
    assert folders - {"base"} <= drawn, folders - drawn


def test_arrows_point_down():
    up = set()
    for room, other, path in arrows():
        place = floors(path.parts[0])
        if place[other] >= place[room] and place[other] + place[room] > 0:
            up.add((f"{path.parts[0]}/{room}", f"{path.parts[0]}.{other}"))
    assert up == KNOWN


def test_one_table_names_the_systems_and_one_command_the_papers():
    """Commands and pages know `SYSTEMS` alone; only papers know what systems compute."""
    users = {"systems": set(), "papers": set()}
    for room, other, path in arrows():
        if other in users:
            users[other].add(room)
        if other == "systems" and room != "papers":
            inside = {one for one in imports(path) if within(one, "semsim.systems")}
            assert inside <= {"semsim.systems", "semsim.systems.SYSTEMS", "semsim.systems.JOBS"}
    assert users == {"systems": {"cli", "ui", "papers"}, "papers": {"cli"}}
    named = re.compile(r"semsim[./]systems[./]\w")
    elsewhere = [
        path.as_posix()
        for path in SOURCES
        if not path.as_posix().startswith(("semsim/systems/", "semsim/papers/"))
        if named.search((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert elsewhere == []


@pytest.mark.parametrize("package", MOST_FILES)
def test_few_files_stand_beside_the_rooms(package):
    alone = [path for path in SOURCES if path.parts[0] == package and len(path.parts) == 2]
    assert len(alone) <= MOST_FILES[package], [path.name for path in alone]


@pytest.mark.parametrize("package", FLOORS)
def test_every_room_says_what_lives_there(package):
    folders = {path.parent for path in SOURCES if path.parts[0] == package}
    for folder in (one for one in folders if "migrations" not in one.parts):  # alembic's, not ours
        first = ast.get_docstring(parsed(folder / "__init__.py"))
        assert first, f"{folder}/__init__.py says nothing"


def test_files_stay_small():
    lines = {path: (ROOT / path).read_text(encoding="utf-8").count("\n") for path in SOURCES}
    most = {path: 70 if path.name == "app.py" else 800 for path in SOURCES}
    large = [f"{path} has {n} lines" for path, n in lines.items() if n > most[path]]
    assert large == []


def test_few_files_are_there_for_one_other_alone():
    """Hold the rule that a file with one importer, in its folder, is part of that importer."""
    names = {path.with_suffix("").as_posix().replace("/", "."): path for path in SOURCES}
    users: dict[Path, set[Path]] = {}
    for path in SOURCES:
        for module in imports(path) & set(names):
            users.setdefault(names[module], set()).add(path)
    lonely = [
        path
        for path, using in users.items()
        if len(using) == 1 and {one.parent for one in using} == {path.parent}
        if next(iter(using)).name != "__init__.py"
    ]
    assert len(lonely) <= MOST_LONELY, sorted(map(str, lonely))


def test_packages_do_not_import_in_circles():
    graph = {}
    for path in SOURCES:
        name = path.with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        graph[name] = imports(path)
    top_level = {
        name: {m for m in ast_top_imports(name) if m in graph and m != name} for name in graph
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join([*trail, name])
        if name in done:
            return
        for module in top_level[name]:
            visit(module, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


def test_few_modules_import_each_other_in_functions():
    names = {
        path.with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        for path in SOURCES
    }
    graph = networkx.DiGraph(
        (name, module)
        for name in names
        for module in ast_imports(name, carried_out)
        if module in names and module != name
    )
    circles = [one for one in networkx.strongly_connected_components(graph) if len(one) > 1]
    assert len(circles) <= MOST_CIRCLES, circles


def ast_top_imports(name: str) -> set[str]:
    """Modules of ours imported when `name` is imported; a package counts by what it defines."""
    return ast_imports(name, lambda module: module.body)


def ast_imports(name: str, looked_at: Callable[[ast.Module], Iterable[ast.AST]]) -> set[str]:
    """Modules of ours that the statements `looked_at` in `name` import."""
    path = Path(name.replace(".", "/") + ".py")
    if path not in FILES:
        path = Path(name.replace(".", "/"), "__init__.py")
    found = set()
    for node in looked_at(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            ours = {n for n in names if Path(n.replace(".", "/") + ".py") in FILES}
            found |= ours or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found
