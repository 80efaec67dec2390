"""Pages of the site that are made from what lies elsewhere in the repository, each kept once."""

import os
import subprocess
import sys
from pathlib import Path

import typer.cli
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.main import get_command

ROOT = Path(__file__).resolve().parents[1]
COPIED = {
    "benchmarks.md": "benchmarks/README.md",
    "tables.md": "benchmarks/tables.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "demo.md": "data/demo/README.md",
    "cases.png": "data/demo/cases.png",
    "people.png": "data/demo/people.png",
    "label.png": "data/demo/label.png",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is generated; a page in docs/ of the same name would be a mistake."""
    for name, source in COPIED.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    made = {"glossary.md": glossary, "reference/commands.md": commands}
    for name, make in {**made, "reference/settings.md": settings}.items():
        files.append(File.generated(config, name, content=make()))
    return files


def glossary() -> str:
    """The words of the studio's page Help, and what they mean."""
    from semsim.reporting.glossary import glossary as words

    terms = (f"**{name}**\n:   {said}\n" for name, said in words().items())
    return "\n".join(["# Glossary", "", *terms])


def settings() -> str:
    """Return a table of every setting of a study."""
    from annotation.spec import SETTINGS

    cells = (
        (f"`{one.name}`", one.label, one.usual_words, "yes" if one.amendable else "no", one.text)
        for one in SETTINGS.values()
    )
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    head = ["| setting | on pages | default | can be amended | meaning |", "| --- " * 5 + "|"]
    text = "Pass them to `semsim-studio study create` as `--setting NAME=VALUE`."
    return "\n".join(["# Study settings", "", text, "", *head, *rows])


def commands() -> str:
    """Every command, as it explains itself."""
    from app import front
    from semsim.base.storage.places import PROGRAM

    program = get_command(front)
    with typer.Context(program, info_name=PROGRAM) as context:
        told = typer.cli.get_docs_for_click(obj=program, ctx=context, indent=1, name=PROGRAM)
    own = (
        f"## Options of `{name}`\n\n```text\n{help_of(name)}```\n" for name in ("serve", "doctor")
    )
    return "\n".join(["# The command line", "", told, *own])


def help_of(command: str) -> str:
    """What a command that parses by itself says, whatever the width of the terminal here."""
    done = subprocess.run(
        [sys.executable, "app.py", command, "--help"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
