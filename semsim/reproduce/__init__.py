"""Tables and figures of the papers, computed again, and a map that none has; each a command."""

from collections.abc import Callable

from semsim.reproduce.copa import reproduce_copa
from semsim.reproduce.ensembler import reproduce_ensembler
from semsim.reproduce.everything import reproduce_everything
from semsim.reproduce.pbpfl import reproduce_pbpfl
from semsim.reproduce.semsim import reproduce_semsim

# The functions' parameters are the options of `python -m semsim reproduce <name>`.
REPRODUCTIONS: dict[str, Callable[..., None]] = {
    "copa": reproduce_copa,
    "ensembler": reproduce_ensembler,
    "everything": reproduce_everything,
    "pbpfl": reproduce_pbpfl,
    "semsim": reproduce_semsim,
}
