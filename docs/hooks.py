"""Pages of the site that are made from what lies elsewhere in the repository, each kept once."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    made |= {"reference/settings.md": settings, "reference/json.md": json_parts}
    for name, make in made.items():
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


def json_parts() -> str:
    """Return the parts and fields of the JSON that each command prints with --json."""
    from app import front
    from semsim.base.cli.commands import parts_of
    from semsim.base.storage.places import PROGRAM

    lines = ["# JSON of commands", "", JSON]
    for words in sorted([*printing_json(get_command(front)), "doctor"]):
        lines += ["", f"## `{PROGRAM} {words} --json`", "", "| part | kind | fields |"]
        lines.append("| --- " * 3 + "|")
        for name, text in parts_of(words.removeprefix("study ")).items():
            fields = text.removeprefix("object: ")
            kind = "object" if fields != text else "table"
            cells = [f"`{field.split()[0]}` {field.split()[1]}" for field in fields.split(", ")]
            lines.append(f"| `{name}` | {kind} | {', '.join(cells)} |")
    return "\n".join(lines)


JSON = (
    "With `--json` a command prints one JSON object. A part is a list of the rows of a table, or "
    "an object. `?` marks a field that may be null or missing; numbers that are not finite are "
    "null. `job` and `reproduce` print those parts that apply."
)


def printing_json(command: Any, words: tuple[str, ...] = ()) -> list[str]:
    """Return the words of each command below `command` that has --json."""
    if not hasattr(command, "list_commands"):
        return [" ".join(words)] if "as_json" in {one.name for one in command.params} else []
    return [
        found
        for name in command.list_commands(None)
        for found in printing_json(command.get_command(None, name), (*words, name))
    ]


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
