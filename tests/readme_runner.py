"""Run what pages show one after the other in one process: `python readme_runner.py STEPS RESULTS`.

STEPS is a JSON list of [page, code], or [page, words of a line]; RESULTS becomes a JSON list of
[exit code, what was printed]. One process, because importing takes longer than most commands do.
`semsim-studio` is what its script calls. Code goes on where that of the same
page before it ended. A step that fails does not keep the others from being run. Of the figures of a
study the first four are drawn, as tests/semsim/reporting/ draws each; a training has one control on
shuffled votes beside it.
"""

import io
import json
import runpy
import sys
import traceback
from collections import defaultdict
from contextlib import redirect_stdout
from pathlib import Path


def run(words: list[str] | str, names: dict[str, object]) -> tuple[int, str]:
    """The exit code of a line, or of code that knows `names`, and what it printed."""
    told = io.StringIO()
    try:
        with redirect_stdout(told):
            if isinstance(words, str):
                exec(words, names)
            elif words[:2] == ["python", "-m"]:
                sys.argv = words[2:]
                runpy.run_module(words[2], run_name="__main__", alter_sys=True)
            elif words[0] == "semsim-studio":
                type_in(words)
            else:
                raise ValueError(f"Nothing here types {words}.")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return code, told.getvalue()
    except Exception:  # noqa: BLE001 - whatever it is, it is told as the failure of this command
        traceback.print_exc()
        return 1, told.getvalue()
    return 0, told.getvalue()


def type_in(words: list[str]) -> None:
    """Do what the script `semsim-studio` does in a process of its own."""
    from semsim.cli.studio import main

    paths, sys.argv = [*sys.path], words
    try:
        main()
    finally:
        sys.path[:] = paths


def do_less() -> None:
    """Let what is not imported yet draw the first figures alone, and train one control."""
    from semsim.learning import ablations_run
    from semsim.reporting import figures

    drawn = figures.figures
    figures.figures = lambda analysis: drawn(analysis)[:4]
    ablations_run.SHUFFLES = 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    do_less()
    steps = json.loads(Path(sys.argv[1]).read_text())
    results = Path(sys.argv[2])
    of_pages: dict[str, dict[str, object]] = defaultdict(lambda: {"__name__": "__main__"})
    results.write_text(json.dumps([run(words, of_pages[page]) for page, words in steps]))
