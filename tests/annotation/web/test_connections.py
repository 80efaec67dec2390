"""A connection that costs a descriptor ends, whoever holds it, and others come in meanwhile."""

import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
import uvicorn
from helpers import limit, until
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from annotation.ui.mount import web_app
from annotation.web import connections, proxies, watching
from annotation.web.connections import Connection, Door
from annotation.web.frame import FrameContext

LONG = 600.0  # seconds; longer than any test
HEAD = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\n"


async def size(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


@contextmanager
def serving(port, door):
    """A server whose connections go through `door`."""
    protocol = type("Own", (Connection,), {"door": door})
    app = Starlette(routes=[Route("/", size, methods=["GET", "POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=port, http=protocol, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


def sending(stack, port, content, n=1):
    """Open connections that have sent `content` and no more."""
    opened = [
        stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=limit(30)))
        for _ in range(n)
    ]
    for one in opened:
        one.sendall(content)
    return opened


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


BROKEN_OFF = (b"", b"G", b"GET / HTTP/1.1\r\nHost: h\r\nX: ", HEAD, HEAD + b"ab")


@pytest.mark.parametrize("content", BROKEN_OFF)
def test_a_request_that_does_not_come_on_is_given_up(port, content):
    door = Door(silent=0.2)
    with serving(port, door), ExitStack() as stack:
        (one,) = sending(stack, port, content)
        assert is_closed(one)
        until(lambda: not door.open)
        assert not door.waiting
        assert "1 closed: no request came" in door.told()


def test_a_head_that_drips_has_no_longer_than_one_that_is_silent(port):
    with serving(port, Door(silent=0.5)), ExitStack() as stack:
        (one,) = sending(stack, port, b"GET / HTTP/1.1\r\nX: ")

        def refused():
            try:
                one.sendall(b"a")
            except ConnectionError:
                return True
            return False

        until(refused, 20)


def test_whoever_asks_is_answered_while_more_are_silent_than_may_be_open(port):
    door = Door(most=20, silent=LONG)
    with serving(port, door) as url, ExitStack() as stack:
        sending(stack, port, b"G", n=100)
        for _ in range(5):
            assert httpx.get(url, timeout=limit(10)).text == "0"
        until(lambda: door.open.total() <= 20)
        assert "20 were open" in door.told()


def test_an_address_gets_its_share_of_those_that_ask_and_no_more(port):
    door = Door(most_each=3, silent=LONG)
    with serving(port, door) as url, ExitStack() as stack:
        silent = sending(stack, port, b"G", n=3)
        until(lambda: door.open.total() == 3)
        assert httpx.get(url, timeout=limit(10)).text == "0"
        assert is_closed(silent[0])  # the one that had been silent longest
        sending(stack, port, b"G", n=30)
        until(lambda: door.closed.total() >= 30)  # of 34, one of which has left by itself
        assert door.open.total() == 3
        assert "from one address" in door.told()
    until(lambda: not door.open)


def test_an_address_whose_connections_are_all_at_work_gets_no_further_one(port):
    door = Door(most_each=2, silent=LONG)
    with serving(port, door) as url, ExitStack() as stack:
        for client in [stack.enter_context(httpx.Client(timeout=limit(10))) for _ in range(2)]:
            assert client.get(url).text == "0"  # and is kept for the next request
        until(lambda: not door.waiting)
        with pytest.raises(httpx.TransportError):
            httpx.get(url, timeout=limit(10))


def test_connections_that_are_used_again_and_bodies_in_parts_stay(port):
    door = Door(silent=LONG)
    with serving(port, door) as url, httpx.Client(timeout=limit(10)) as client:
        for _ in range(3):
            assert client.get(url).text == "0"
            assert client.post(url, content=b"x" * 200_000).text == "200000"
        assert door.open.total() == 1
        assert not door.waiting
        assert door.told() == "ok"


def test_a_server_shares_out_the_descriptors_it_has():
    door = Door()
    door.set_up(1024, behind_proxy=False)
    assert door.most <= 1024 - connections.BACKLOG
    assert 6 * 30 < door.most_each < door.most / 2  # browsers of one laboratory, and others too
    door.set_up(1024, behind_proxy=True)
    assert door.most_each is None
    door.set_up(100, behind_proxy=False)
    assert 0 < door.most < 100


def test_the_limit_of_open_files_is_raised_to_what_the_system_allows():
    pytest.importorskip("resource")
    program = (
        "import resource; from annotation.web.connections import raise_limit; "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (300, 700)); print(raise_limit())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == [b"700"]


@pytest.mark.parametrize(("trusted", "bounded"), [([], True), (["127.0.0.1"], False)])
def test_the_studio_is_served_through_this_door(monkeypatch, capsys, trusted, bounded):
    seen = []
    monkeypatch.setattr(connections, "DOOR", Door())

    def run(server):
        seen.append(server.config)
        server.started = True

    monkeypatch.setattr(uvicorn.Server, "run", run)
    proxies.serve(Starlette(), "127.0.0.1", 0, trusted)
    (config,) = seen
    assert config.http is Connection
    assert config.backlog < connections.OTHERS
    assert (connections.DOOR.most_each is not None) is bounded


def test_health_says_that_connections_were_closed_and_is_well(store, tmp_path, monkeypatch, caplog):
    door = Door()
    monkeypatch.setattr(watching, "DOOR", door)
    door.note("no request came within 20 s")
    door.note("no request came within 20 s")
    app = web_app(FrameContext(store=store), tmp_path / "images")
    reply = TestClient(app, base_url="http://127.0.0.1").get("/health")
    assert reply.status_code == 200
    assert reply.json()["connections"] == "2 closed: no request came within 20 s"
    assert len(caplog.messages) == 1  # whoever opens a thousand does not fill the log


# A server with 600 descriptors; with the last word "bare" its connections have no door.
SERVER = """
import resource, sys
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from annotation.web import connections, proxies

resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))
async def well(request):
    return PlainTextResponse("well")
trusted = ["127.0.0.1"] if sys.argv[2] == "proxy" else []
if sys.argv[2] == "bare":
    connections.settings = lambda **how: {}
proxies.serve(Starlette(routes=[Route("/", well)]), "127.0.0.1", int(sys.argv[1]), trusted)
"""


@contextmanager
def few_descriptors(port, how):
    """The address of such a server."""
    pytest.importorskip("resource")
    command = [sys.executable, "-c", SERVER, str(port), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        url = f"http://127.0.0.1:{port}"
        try:
            until(lambda: answered(url, 10))
            yield url
        finally:
            server.kill()


def answered(url, seconds):
    """Tell whether another address, which asks just once, is answered within `limit(seconds)`."""
    other = httpx.HTTPTransport(local_address="127.0.0.2")
    try:
        with httpx.Client(transport=other, timeout=limit(seconds)) as client:
            return client.get(url).text == "well"
    except httpx.TransportError:
        return False


@contextmanager
def dripping(opened):
    """Send one byte a second on each connection that is still open."""
    stop, rounds = threading.Event(), []

    def send():
        while not stop.wait(1.0):
            for one in opened:
                with suppress(OSError):
                    one.send(b"a")
            rounds.append(len(opened))

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield rounds
    finally:
        stop.set()
        sender.join()


CROWD = 900  # connections of others, half as many again as there are descriptors


@pytest.mark.parametrize("how", ["direct", "proxy"])
def test_others_are_answered_while_more_hold_connections_than_there_are_descriptors(port, how):
    """Silent ones, heads that drip and bodies that drip, alike."""
    with few_descriptors(port, how) as url, ExitStack() as stack:
        opened = [
            one
            for content in (b"G", b"GET / HTTP/1.1\r\nX: ", HEAD)
            for one in sending(stack, port, content, CROWD // 3)
        ]
        told = []
        with dripping(opened) as rounds:
            while len(rounds) < 3:
                told.append(answered(url, 10))
        assert told == [True] * len(told)


def test_without_a_door_the_same_connections_keep_everybody_out(port):
    """Or there would be too few for the test above to show anything."""
    with few_descriptors(port, "bare") as url, ExitStack() as stack:
        sending(stack, port, b"G", CROWD)
        until(lambda: not answered(url, 2))
        assert [answered(url, 2) for _ in range(3)] == [False] * 3
