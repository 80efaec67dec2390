"""The machines that work is spread over: reaching them, asking what they run, sending them work.

Only workers need the product. The scheduler unpacks every task it passes on, so what it gets is
a function that travels whole and bytes that it never opens.
"""

import logging
import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from semsim.base.errors import JobError, MissingExtraError
from semsim.base.storage.versions import product_version as product_version
from semsim.device import cores

try:
    import dask
    from distributed import Client as Client
    from distributed import LocalCluster
    from distributed.comm import get_address_host
    from distributed.utils import get_mp_context
except ModuleNotFoundError as error:
    raise MissingExtraError("Work in many processes", "grid") from error

PATIENCE = 20  # seconds until a scheduler that does not answer is given up
# Dask else looks where the work is and whether its own loop turns, 150 times a second a process.
UNWATCHED = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
_LARGE = ["distributed", "pandas", "torch._dynamo"]  # the last by every optimiser
_ENGINE = "semsim.grid.dask_executor"
_START = "cd <checkout> && PYTHONPATH=. dask worker <address of the scheduler>"
log = logging.getLogger(__name__)


@contextmanager
def connect(
    scheduler: str = "", workers: int = 0, *, needs: str = _ENGINE, patience: float = PATIENCE
) -> Iterator[Client]:
    """Yield a client of the Dask scheduler at `scheduler`, or of a cluster on this machine for "".

    Args:
        workers: Processes of that cluster; 0 is one a core.
        needs: The module that has the work.

    Raises:
        JobError: Where no scheduler answers at that address, or a machine cannot do the work.
    """
    if scheduler:
        try:
            get_address_host(scheduler)  # a client of what is no address tells of itself as it dies
            client = Client(scheduler, timeout=patience, set_as_default=False)
        except (OSError, ValueError) as error:
            raise JobError(
                f"No Dask scheduler answers at {scheduler!r} ({error}). --scheduler is the address "
                "of one, as tcp://host:8786; start it with `dask scheduler`, which prints it."
            ) from error
        with client:
            check_machines(client, needs)
            yield client
        return
    count = workers or cores()
    # A port of its own: two clusters on one machine would say that a dashboard's is in use.
    server = {"dashboard": False, "dashboard_address": ":0"}
    quiet: dict[str, Any] = {"scheduler_kwargs": server, "silence_logs": logging.ERROR}
    with (
        dask.config.set(_fresh()),
        LocalCluster(
            n_workers=count, threads_per_worker=1, memory_limit=1 / count, **quiet
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _fresh() -> dict[str, Any]:
    """Return Dask's settings for the start of processes on this machine.

    They are never copies of this one, as a GPU cannot be used after a fork. Where the machine can,
    they are copies of one that has imported the large libraries and done nothing.
    """
    settings: dict[str, Any] = dict(UNWATCHED)
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return settings
    settings["distributed.worker.multiprocessing-method"] = "forkserver"
    with dask.config.set(settings):
        get_mp_context()  # asks for what Dask wants, once; we want more
    multiprocessing.get_context("forkserver").set_forkserver_preload(_LARGE)
    return settings


def cores_for_each(workers: int, scheduler: str = "") -> int:
    """Threads of each of so many workers that share the cores of this machine.

    Args:
        scheduler: Address of a Dask scheduler, whose workers have a thread each.
    """
    return 1 if scheduler else max(1, cores() // workers)


def check_machines(client: Client, needs: str) -> None:
    """`JobError` that names every machine which cannot do the work, why, and what to do.

    Scheduler and workers need this Python; workers need this version of the product as well, and
    all that the module `needs` imports.
    """
    workers_within_reach(client)
    versions = client.get_versions()
    asked = {"scheduler": versions["scheduler"], **versions["workers"]}
    ours = _python(versions["client"])
    problems = [
        f"{address} runs Python {_python(told)}, this machine {ours}: start it with the same."
        for address, told in asked.items()
        if _python(told) != ours
    ]
    if not problems:
        told = client.run(_asking(), needs, on_error="return")
        problems = [f"{address} {why}" for address, one in told.items() if (why := _problem(one))]
    if problems:
        raise JobError("The machines are not ready:\n" + "\n".join(problems))


def workers_within_reach(client: Client) -> list[str]:
    """Addresses of the workers that there are; those that no other machine reaches are ended.

    A worker that began while its machine had no network is known by an address of that machine
    alone. It hears what it is to do, but what it made could never be fetched. Where something
    begins it again, it is there under its right address. One on the scheduler's own machine, or
    behind a tunnel to it, may well have such an address, and stays.
    """
    workers = list(client.nthreads())
    strays = stray(client.scheduler_info()["address"], workers)
    if not strays:
        return workers
    gone = client.run_on_scheduler(_sending_away(), strays, _own_address())
    if gone:
        log.warning(
            "Sent away, as no other machine reaches them: %s. They began without a network; begin "
            "them again, or with --host and the address of their machine.",
            ", ".join(gone),
        )
    return [one for one in workers if one not in gone]


def stray(scheduler: str, workers: Iterable[str]) -> list[str]:
    """Those of the addresses that are of one machine alone, where that of the scheduler is not."""
    is_own = _own_address()
    return [] if is_own(scheduler) else [one for one in workers if is_own(one)]


def parcel(function: Callable[..., Any], *asked: Any) -> tuple[Callable[..., Any], bytes]:
    """Return what to submit instead of `function(*given, *asked)`; `given` follows the bytes."""
    return _opening(), pickle.dumps((function, asked))


# Functions inside functions are sent by their code instead of by their name, which only works
# where the product can be imported.


def _opening() -> Callable[..., Any]:
    def opened(content: bytes, *given: Any) -> Any:
        import pickle

        function, asked = pickle.loads(content)
        return function(*given, *asked)

    return opened


def _own_address() -> Callable[[str], bool]:
    """Return a function, which travels whole, for whether an address is of its machine alone."""

    def is_own(address: str) -> bool:
        from ipaddress import ip_address

        from distributed.comm import get_address_host

        host = get_address_host(address)
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    return is_own


def _sending_away() -> Callable[..., Any]:
    async def sent_away(
        addresses: list[str], is_own: Callable[[str], bool], dask_scheduler: Any
    ) -> list[str]:
        streams = dask_scheduler.stream_comms
        away = [a for a in addresses if a in streams and not is_own(streams[a].comm.peer_address)]
        for address in away:
            await dask_scheduler.remove_worker(address, stimulus_id="semsim-stray", expected=True)
        return away

    return sent_away


def _asking() -> Callable[[str], tuple[str, str]]:
    def version_there(needs: str) -> tuple[str, str]:
        try:
            from importlib import import_module

            import_module(needs)
            return import_module("semsim.grid.machines").product_version(), ""
        except Exception as error:  # noqa: BLE001  whatever it is, it is told
            return "", f"{type(error).__name__}: {error}"

    return version_there


def _problem(told: Any) -> str:
    """Return the problem with a worker that answered `told`; "" where there is none."""
    if isinstance(told, BaseException):
        return f"could not be asked ({type(told).__name__}: {told}): start it again with {_START}"
    version, missing = told
    if missing:
        return f"cannot import semsim ({missing}): start it with {_START}"
    if version != product_version():
        return (
            f"runs another version of semsim ({version}; here {product_version()}): bring its "
            "checkout to the same commit and start it again."
        )
    return ""


def _python(versions: dict[str, Any]) -> str:
    return ".".join(str(versions["packages"]["python"]).split(".")[:2])
