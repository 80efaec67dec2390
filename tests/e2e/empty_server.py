"""The product where there is nothing yet: `python empty_server.py DATA_DIR PORT`."""

import sys
from pathlib import Path

from studio import Server


class EmptyServer(Server):
    """Every page, without a study, a set or a weight file; none came with the product either."""

    def __init__(self, data: Path) -> None:
        super().__init__(data, [__file__, str(data), "{port}"])


def main(data: Path, port: int) -> None:
    """Serve what is in `data`."""
    import uvicorn
    from studio import compose

    from annotation import ui
    from annotation.ui import mount
    from semsim import ui as lab
    from semsim.base.storage import places
    from semsim.base.storage.records import CASES, PEOPLE_ANSWER, write_record

    for module in (mount, places, ui, lab):  # those that were imported have it by now
        module.DEMO = data / "demo"
    write_record(places.DEMO / "cases.json", CASES, {"cases": []})
    write_record(places.DEMO / "people/answer.json", PEOPLE_ANSWER, {"rows": []})
    from annotation.store import Store

    served = compose(Store(f"sqlite:///{data / 'studies.db'}"), data)
    uvicorn.run(served, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
