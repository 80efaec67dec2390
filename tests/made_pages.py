"""What pages of the attack lab are tested with."""

import json

from semsim.ui import ScienceContext


def context_at(data):
    """What a page gets where nobody has made a study."""
    return ScienceContext(
        data=data,
        checkpoints=data / "checkpoints",
        studies=list,
        labels={}.__getitem__,
        votes={}.__getitem__,
        device="cpu",
    )


def form_of(state):
    """What a form sends once a card with this state has filled it."""
    known = json.loads(state)
    lists = {name: {item: {} for item in items} for name, items in known["lists"].items()}
    return json.dumps({"fields": known["fields"], "lists": lists})
