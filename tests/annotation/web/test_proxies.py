"""What a request says about whom it comes from is believed only from those who were named."""

import argparse

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from annotation.web.proxies import Proxies, proxy

SAID = {
    "X-Forwarded-For": "203.0.113.7",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.example",
    "Forwarded": "for=203.0.113.7",
}


async def told(request: Request) -> JSONResponse:
    names = [name for name in request.headers if "forwarded" in name]
    return JSONResponse([request.client.host, request.url.scheme, names, request.headers["host"]])


def ask(trusted, client="127.0.0.1", headers=SAID):
    app = Proxies(Starlette(routes=[Route("/", told)]), trusted)
    return TestClient(app, client=(client, 50000)).get("/", headers=headers).json()


def test_nobody_is_believed_by_default_not_even_this_machine():
    assert ask([]) == ["127.0.0.1", "http", [], "testserver"]
    assert ask([], "::1") == ["::1", "http", [], "testserver"]


@pytest.mark.parametrize("trusted", [["127.0.0.1"], ["127.0.0.0/8"], ["10.0.0.1", "127.0.0.1"]])
def test_whoever_was_named_is_believed(trusted):
    client, scheme, _, host = ask(trusted)
    assert (client, scheme, host) == ("203.0.113.7", "https", "evil.example")


def test_of_several_hosts_the_one_of_the_nearest_web_server_counts():
    said = {"X-Forwarded-Host": "evil.example, lab.example.org"}
    assert ask(["127.0.0.1"], headers=said)[3] == "lab.example.org"
    assert ask(["127.0.0.1"], headers={})[3] == "testserver"


def test_others_are_not_believed_where_somebody_was_named():
    assert ask(["10.0.0.1"]) == ["127.0.0.1", "http", [], "testserver"]


def test_what_a_client_says_before_the_proxy_adds_its_part_is_not_believed():
    said = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7"}
    assert ask(["127.0.0.1"], headers=said)[0] == "203.0.113.7"
    assert ask(["127.0.0.1", "203.0.113.7"], headers=said)[0] == "198.51.100.1"


def test_a_server_behind_others_starts_and_stops():
    with TestClient(Proxies(Starlette(), ["127.0.0.1"])):
        pass


@pytest.mark.parametrize("text", ["127.0.0.1", "::1", "10.0.0.0/8", "2001:db8::/32"])
def test_addresses_and_networks_can_be_named(text):
    assert proxy(text) == text


@pytest.mark.parametrize("text", ["*", "", "lab.example.org", "10.0.0.1/8", "127.0.0.1:80"])
def test_nothing_else_can(text):
    with pytest.raises(argparse.ArgumentTypeError, match="address or a network"):
        proxy(text)
