"""THINGS-Mooney: 1,854 originals and their two-tone versions, 947 people.

Linde-Domingo and others 2024. Each share is of those who recognised a two-tone picture before they
saw its original.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from semsim.base.errors import DataError
from semsim.base.table_files import check_columns
from semsim.people.fetching import archive_of
from semsim.people.source import SHARES, Judged, Source, paired, picture_files

TABLE = "things_mooney.csv"
_BEFORE = "recog_pre_disambiguation"
_MODEL = "two-tone"


def _read(folder: Path) -> Judged:
    """Read `things_mooney.csv`, and the grey and the two-tone pictures in `stim`."""
    table = pd.read_csv(folder / TABLE, dtype={"image": str}, keep_default_na=False)
    check_columns(table, ("image", _BEFORE), f"{folder / TABLE}", DataError)
    values = pd.to_numeric(table[_BEFORE], errors="coerce")
    if not values.between(0, 1).all():
        row = int(np.argmin(values.between(0, 1)))
        raise DataError(f"{folder / TABLE}, row {row + 2}: {_BEFORE} should lie in [0, 1].")
    shares = pd.DataFrame(
        {
            "model": _MODEL,
            "image_id": table["image"],
            "class_name": table["image"],
            SHARES: values,
        }
    )
    grey, mooney = (_pictures(folder, kind) for kind in ("gray", "mooney"))
    shown = {(_MODEL, image_id): path for image_id, path in mooney.items()}
    return Judged(pairs=paired(shares, grey, shown), shares=shares)


def _pictures(folder: Path, kind: str) -> dict[str, Path]:
    found = picture_files(folder, f"stim/{kind}/*_{kind}.*")
    return {stem.removesuffix(f"_{kind}"): path for stem, path in found.items()}


_REPOSITORY = ("wobc/things-mooney", "d989eb66d3139b363b069eae34875bc92468d351")
THINGS_MOONEY = Source(
    name="things-mooney",
    about="947 people recognise two-tone versions of 1,854 pictures; a share a picture",
    repository=_REPOSITORY[0],
    commit=_REPOSITORY[1],
    licence="MIT",
    citation="Linde-Domingo et al. 2024, THINGS-Mooney, doi:10.5281/zenodo.14040189",
    files=archive_of(*_REPOSITORY),
    megabytes=586,
    tables={TABLE: ""},
    marks=((TABLE, "stim"),),
    read=_read,
)
