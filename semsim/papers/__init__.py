"""Tables and figures of the papers, computed again, and what no paper has; each a command."""

from collections.abc import Callable

from semsim.papers.copa import reproduce_copa
from semsim.papers.deployed import reproduce_deployed
from semsim.papers.ensembler import reproduce_ensembler
from semsim.papers.everything import reproduce_everything
from semsim.papers.pbpfl import reproduce_pbpfl
from semsim.papers.people import reproduce_people
from semsim.papers.semsim import reproduce_semsim
from semsim.papers.threats import reproduce_threats

# The functions' parameters are the options of `semsim-studio reproduce <name>`.
REPRODUCTIONS: dict[str, Callable[..., None]] = {
    "copa": reproduce_copa,
    "deployed": reproduce_deployed,
    "ensembler": reproduce_ensembler,
    "everything": reproduce_everything,
    "pbpfl": reproduce_pbpfl,
    "people": reproduce_people,
    "semsim": reproduce_semsim,
    "threats": reproduce_threats,
}
