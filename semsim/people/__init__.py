"""Readers of public judgements of people.

A source has an address pinned to a commit, a licence, a citation, and a reader, which ends in
reconstruction sets and a table of votes or of shares. To add one: a file and a line here.
Pictures of a source are never part of the product.
"""

from pathlib import Path

from semsim.base.progress import silent
from semsim.base.registry import Registry
from semsim.importers import IMPORTERS
from semsim.importers.import_plan import Findings
from semsim.people.cifar import CIFAR_10H, LABEL_ERRORS
from semsim.people.recurrent import RECURRENT
from semsim.people.source import Source
from semsim.people.texture_vs_shape import TEXTURE_VS_SHAPE
from semsim.people.things_mooney import THINGS_MOONEY

_VOTES = "semsim_cifar100_labels.csv"


def _paper(folder: Path) -> Findings:
    return IMPORTERS["semsim-cifar100"](folder / _VOTES, "semsim-votes", silent)


SEMSIM_VOTES = Source(
    name="semsim-votes",
    title="5 people, the 14 target models of the SemSim paper",
    about="5 people name 8,400 reconstructions of CIFAR-100 by 14 target models",
    licence="none is stated with the release",
    citation="Sun et al. 2023, Privacy Assessment on Reconstructed Images (NeurIPS)",
    tables={_VOTES: ""},  # a user makes it
    marks=((_VOTES,),),
    read=_paper,
    note="The table has PSNR and MSE of each reconstruction, and no picture.",
)
_EVERY = (RECURRENT, SEMSIM_VOTES, TEXTURE_VS_SHAPE, CIFAR_10H, LABEL_ERRORS, THINGS_MOONEY)
SOURCES: Registry[Source] = Registry(
    "source of people's judgements", {one.name: one for one in _EVERY}
)

__all__ = ["SOURCES", "Source"]
