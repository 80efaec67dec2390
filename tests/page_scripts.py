"""Running the scripts of the labelling page without a browser."""

import json
import subprocess
from pathlib import Path

from helpers import limit
from programs import needed

import annotation.ui

STATIC = Path(annotation.ui.__file__).parent / "static"
# What `tests/helpers.py` has for Python: milliseconds, and a wait for a condition.
WAITS = f"""
const limit = (seconds) => {limit(1000)} * seconds;
const until = ((later) => async (holds) => {{
  const deadline = performance.now() + limit(60);
  while (!holds()) {{
    if (performance.now() > deadline) throw new Error(`still not so: ${{holds}}`);
    await new Promise((go) => later(go));
  }}
}})(setTimeout);
"""


def evaluate(script, names, expression, value=None, before=""):
    """What a JavaScript expression over `value` gives, `names` being those that a script exports.

    before: what is carried out first, as there is no page; the expression may wait, also by
    `until(() => …)`, within `limit(seconds)` milliseconds.
    """
    program = (
        f"{WAITS}{before}\n"
        f"const {{ {names} }} = await import({json.dumps((STATIC / script).as_uri())});"
        f"const value = {json.dumps(value)};"
        f"console.log(JSON.stringify(await ({expression}))); process.exit()"
    )
    command = [needed("Node"), "--input-type=module", "-e", program]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
