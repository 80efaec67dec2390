"""A Flower server or client as a process of its own: flower_process.py PORT (server | NUMBER)."""

import sys
from pathlib import Path

from made_federated import SETTINGS, made_data
from safetensors.torch import save_file

from semsim.federated.flower import join, serve
from semsim.federated.rounds import make_clients


def main() -> None:
    address, role, path = sys.argv[1:]
    data = made_data()
    if role == "server":
        network = serve(SETTINGS, data, address)
        save_file(dict(network.state_dict()), Path(path))
        return
    number = int(role)
    join(SETTINGS, data, make_clients(SETTINGS, data)[number].examples, number, address)


main()
