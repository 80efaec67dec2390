"""The shape of the code is a test: which way imports point, and where each library may be used."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path.relative_to(ROOT)
    for path in [*ROOT.glob("semsim/**/*.py"), *ROOT.glob("annotation/**/*.py"), ROOT / "app.py"]
)
# Library → where it may be imported: path prefixes.
ALLOWED = {
    "gradio": ("semsim/ui/", "annotation/ui/", "app.py"),
    "sqlalchemy": ("annotation/store/",),
    "alembic": ("annotation/store/",),
    "distributed": ("semsim/campaign/runner.py", "semsim/campaign/machines.py"),
    "torch": ("semsim/",),
    "torchvision": ("semsim/",),
    "semsim": ("semsim/", "app.py"),
    "annotation": ("annotation/", "app.py"),
    "matplotlib": ("semsim/datasets/", "semsim/ui/", "semsim/analysis/", "semsim/reporting/"),
}
# Package → packages of ours it must not import: arrows point one way.
FORBIDDEN = {
    "semsim/ui/": (),
    "semsim/": ("semsim.ui",),
    "annotation/ui/": (),
    "annotation/": ("annotation.ui",),
    "annotation/store/": ("annotation.study", "annotation.web.api", "annotation.ui"),
    "annotation/tasks/": ("annotation.store", "annotation.study", "annotation.web.api"),
    "annotation/formats/": ("annotation.store", "annotation.study", "annotation.web.api"),
    "annotation/votes/": ("annotation.store", "annotation.study", "annotation.web.api"),
    "semsim/attacks/": ("semsim.campaign", "semsim.metrics", "semsim.learning"),
    "semsim/targets/": ("semsim.attacks", "semsim.campaign", "semsim.metrics", "semsim.learning"),
    "semsim/defences/": ("semsim.attacks", "semsim.campaign", "semsim.targets"),
    "semsim/metrics/": ("semsim.attacks", "semsim.campaign.demo", "semsim.jobs"),
    "semsim/analysis/": ("semsim.attacks", "semsim.campaign", "semsim.jobs"),
    "semsim/reporting/": ("semsim.campaign", "semsim.jobs", "semsim.ui"),
}


def imports(path: Path) -> set[str]:
    """Every module a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_libraries_are_used_only_where_they_belong(path):
    for library, places in ALLOWED.items():
        if any(within(module, library) for module in imports(path)):
            assert path.as_posix().startswith(places), f"{path} must not import {library}"


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_arrows_point_one_way(path):
    place = max((p for p in FORBIDDEN if path.as_posix().startswith(p)), key=len, default=None)
    for package in FORBIDDEN.get(place, ()):
        bad = [module for module in imports(path) if within(module, package)]
        assert not bad, f"{path} must not import {bad[0]}"


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_files_stay_small(path):
    lines = (ROOT / path).read_text(encoding="utf-8").count("\n")
    assert lines <= (80 if path.name == "app.py" else 400), f"{path} has {lines} lines: split it"


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


def ast_top_imports(name: str) -> set[str]:
    """Modules of ours imported when `name` is imported; a package counts by what it defines."""
    path = ROOT / (name.replace(".", "/") + ".py")
    if not path.exists():
        path = ROOT / name.replace(".", "/") / "__init__.py"
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            ours = {n for n in names if (ROOT / n.replace(".", "/")).with_suffix(".py").exists()}
            found |= ours or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found
