"""Pages of the site that are made from what lies elsewhere in the repository, each kept once."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import typer.cli
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.main import get_command

ROOT = Path(__file__).resolve().parents[1]
COPIED = {
    "benchmarks.md": "benchmarks/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "demo.md": "data/demo/README.md",
    "cases.png": "data/demo/cases.png",
    "label.png": "data/demo/label.png",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is generated; a page in docs/ of the same name would be a mistake."""
    for name, source in COPIED.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    for name, text in (("glossary.md", glossary()), ("reference/commands.md", commands())):
        files.append(File.generated(config, name, content=text))
    return files


def glossary() -> str:
    """The words of the studio's page Help, and what they mean."""
    words = tomllib.loads((ROOT / "semsim/reporting/glossary.toml").read_text(encoding="utf-8"))
    return "\n".join(["# Glossary", "", *(f"**{name}**\n:   {words[name]}\n" for name in words)])


def commands() -> str:
    """Every command of all programs, as each explains itself."""
    return "\n".join(["# The command line", "", *programs()])


def programs() -> Iterator[str]:
    from annotation.cli.main import app as annotation
    from semsim.cli.main import app as semsim

    for name, app in (("python -m semsim", semsim), ("python -m annotation", annotation)):
        program = get_command(app)
        with typer.Context(program, info_name=name) as context:
            yield typer.cli.get_docs_for_click(obj=program, ctx=context, indent=1, name=name)
    yield f"## `python app.py`\n\nInstalled, `semsim-studio`.\n\n```text\n{help_of_studio()}```\n"


def help_of_studio() -> str:
    """What `python app.py --help` says, whatever the width of the terminal that builds the site."""
    done = subprocess.run(
        [sys.executable, "app.py", "--help"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
