"""Tables and figures of the papers, computed again, and what no paper has; each a command."""

from collections.abc import Callable

from semsim.reproduce.copa import reproduce_copa
from semsim.reproduce.deployed import reproduce_deployed
from semsim.reproduce.ensembler import reproduce_ensembler
from semsim.reproduce.everything import reproduce_everything
from semsim.reproduce.pbpfl import reproduce_pbpfl
from semsim.reproduce.semsim import reproduce_semsim

# The functions' parameters are the options of `semsim-studio reproduce <name>`.
REPRODUCTIONS: dict[str, Callable[..., None]] = {
    "copa": reproduce_copa,
    "deployed": reproduce_deployed,
    "ensembler": reproduce_ensembler,
    "everything": reproduce_everything,
    "pbpfl": reproduce_pbpfl,
    "semsim": reproduce_semsim,
}
