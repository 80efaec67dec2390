"""Running the scripts of the labelling page without a browser."""

import json
import subprocess
from pathlib import Path

from programs import needed

import annotation.ui

STATIC = Path(annotation.ui.__file__).parent / "static"


def evaluate(script, names, expression, value=None, before=""):
    """What a JavaScript expression over `value` gives, `names` being those that a script exports.

    before: what is carried out first, as there is no page; the expression may wait.
    """
    program = (
        f"{before}\n"
        f"const {{ {names} }} = await import({json.dumps((STATIC / script).as_uri())});"
        f"const value = {json.dumps(value)};"
        f"console.log(JSON.stringify(await ({expression}))); process.exit()"
    )
    command = [needed("Node"), "--input-type=module", "-e", program]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
