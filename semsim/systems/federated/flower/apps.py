"""Apps that Flower's processes run: both only hand bytes to the command that started them.

So Flower's environment needs nothing of this program's, data and keys stay in one process, and
nothing is imported again for every message. `RELAY` names the variable that holds that command's
address.
"""

import os
from collections.abc import Mapping
from multiprocessing import connection
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict  # type: ignore[import-not-found]
from flwr.clientapp import ClientApp  # type: ignore[import-not-found]
from flwr.serverapp import Grid, ServerApp  # type: ignore[import-not-found]

RELAY = "SEMSIM_FLOWER_RELAY"
_PART = "said"

server = ServerApp()
client = ClientApp()


@server.main()  # type: ignore[untyped-decorator]
def serve(grid: Grid, context: Context) -> None:
    """Do what the server's command asks for until it has no more to ask."""
    del context
    with _relay() as line:
        while (asked := line.recv()) is not None:
            line.send(_done(grid, *asked))


@client.query()  # type: ignore[untyped-decorator]
def answer(message: Message, context: Context) -> Message:
    """Have the client's command answer."""
    del context
    with _relay() as line:
        said = message.content[_PART]
        line.send((said["kind"], {name: said[name] for name in said if name != "kind"}))
        fields = line.recv()
    return Message(RecordDict({_PART: ConfigRecord(fields)}), reply_to=message)


def _done(grid: Grid, verb: str, *arguments: Any) -> Any:
    if verb == "nodes":
        return list(grid.get_node_ids())
    if verb == "push":
        node, kind, fields = arguments
        said = RecordDict({_PART: ConfigRecord({"kind": kind, **fields})})
        return next(iter(grid.push_messages([Message(said, node, "query")])), "")
    found = grid.pull_messages(arguments[0])
    return {one.metadata.reply_to_message_id: _fields(one) for one in found}


def _fields(message: Message) -> Mapping[str, Any] | None:
    return None if message.has_error() else dict(message.content[_PART])


def _relay() -> connection.Connection:
    address, key = os.environ[RELAY].rsplit("|", 1)
    return connection.Client(address, authkey=bytes.fromhex(key))
