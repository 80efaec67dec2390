"""Requests made up from the schema that the HTTP interface has of itself, and then spoilt."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import schemathesis
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, settings
from starlette.routing import Mount

CASES = 4  # of each operation; each is sent in many spoilt ways
LATE, EARLY = "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"
# What has broken servers before, this one too.
NASTY = (
    *("\0", "a\0b", "\ud800", "a\udfff", "\x1b[2J", "\u202e", "%00", "%", "..", "{}", "'\""),
    *("", " ", "x" * 300, "9" * 5000, "-1", "NaN", "null", EARLY, LATE, "0000", "\u0663", "\xb2"),
    *(float("nan"), float("inf"), -1, 0, 2**31, 2**63, 2**64, 10**400, 1e308, -1e308, 5e-324),
    *(
        None,
        True,
        [],
        {},
        [[]],
        {"": ""},
        {"\0": "\ud800"},
        ["\0"] * 9,
        json.loads("[" * 99 + "]" * 99),
    ),
)
HEADERS = (
    {"origin": "http://[::1"},
    {"origin": "null"},
    {"origin": "\xff"},
    {"host": "[::1"},
    {"host": ""},
    {"content-type": "multipart/form-data; boundary=x"},
    {"content-type": "multipart/form-data"},
    {"content-type": "application/x-www-form-urlencoded; charset=idna"},
    {"content-type": "application/json; charset=utf-7"},
    {"content-type": "\xff"},
    {"content-length": "9" * 5000},
    {"transfer-encoding": "chunked"},
    {"x-annotator": "\xff\xfe"},
    {"accept": "\xff"},
    {"x-forwarded-for": "[::1", "x-forwarded-proto": "\xff"},
    {"range": "bytes=9-1"},
)
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request: where the path has parameters, `address` is filled in already."""

    method: str
    path: str  # as the schema has it
    address: str
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""


def schema_of(
    routes: Sequence[Any],
    forms: Mapping[str, Sequence[str]],
    bodies: Mapping[str, Sequence[str]],
    queries: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """The OpenAPI schema of `routes`, of hidden ones too and of files in mounted folders.

    forms, bodies, queries: what routes read by themselves, by path: the fields of forms and of
    JSON, and the parameters of addresses.
    """
    found = list(_routes(routes))
    for route in found:
        route.include_in_schema = True
    schema = get_openapi(title="SemSim Studio", version="1", routes=found)
    paths = schema["paths"]
    for mounted in routes:
        if isinstance(mounted, Mount):
            paths[mounted.path + "/{file}"] = {"get": {"parameters": [_parameter("file", "path")]}}
    for path, fields in forms.items():
        texts = {name: {"type": "string"} for name in fields}
        body = {"type": "object", "properties": texts, "required": list(fields)}
        paths[path]["post"]["requestBody"] = _sent(FORM, body)
    for path, fields in bodies.items():
        body = {"type": "object", "properties": {name: {} for name in fields}}
        paths[path]["post"]["requestBody"] = _sent(JSON, body)
    for path, names in queries.items():
        for operation in paths[path].values():
            known = operation.setdefault("parameters", [])
            known += [_parameter(name, "query") for name in names]
    return schema


def _sent(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"content": {kind: {"schema": body}}, "required": True}


def _parameter(name: str, place: str) -> dict[str, Any]:
    text = {"type": "string"}
    return {"name": name, "in": place, "required": place == "path", "schema": text}


def unnamed(schema: dict[str, Any]) -> set[str]:
    """The paths to which something is sent whose fields `schema` does not name."""
    return {
        path
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
        if method == "post" and not _names(operation.get("requestBody", {"content": {}}))
    }


def _names(body: dict[str, Any]) -> bool:
    sent = [kind["schema"] for kind in body["content"].values()]
    return any("$ref" in one or "properties" in one for one in sent)


def _routes(routes: Sequence[Any]) -> Iterator[APIRoute]:
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "original_router"):
            yield from _routes(route.original_router.routes)


def cases_of(schema: dict[str, Any]) -> list[list[schemathesis.Case]]:
    """Cases of each operation in `schema`, which keep to it; the same every time."""
    operations = schemathesis.openapi.from_dict(schema).get_all_operations()
    return [_cases(operation.ok()) for operation in operations]


def _cases(operation: Any) -> list[schemathesis.Case]:
    made = []

    @settings(
        max_examples=CASES,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy())
    def collect(case: schemathesis.Case) -> None:
        made.append(case)

    collect()
    return made


class Spoiler:
    """Makes requests of cases, with real values and nasty ones in them by chance.

    real: values that exist, by the name of the parameter or field, or by path and name.
    """

    def __init__(self, seed: int, real: Mapping[str, Sequence[Any]]) -> None:
        self._rng = random.Random(seed)
        self._real = real
        self._spoilt = 0.0  # how often a value of this request is nasty
        self._path = ""  # of this request

    def request(self, case: schemathesis.Case) -> Asked:
        """What to send for `case`; half of all requests are spoilt."""
        self._spoilt, self._path = self._rng.choice([0.0, 0.25]), case.operation.path
        given = {name: self._put(name, one) for name, one in (case.path_parameters or {}).items()}
        address = case.operation.path
        for name, value in given.items():
            address = address.replace(f"{{{name}}}", _escaped(_text(value)))
        query = self._put_all(case.query or {})
        if query:
            address += "?" + _form(query)
        headers, content = {}, b""
        if case.media_type is not None:
            # Forms may be left out.
            body = self._put_all(case.body) if isinstance(case.body, dict) else {}
            if self._rng.random() < self._spoilt / 4:
                body = self._rng.choice(NASTY)
            headers["content-type"] = case.media_type
            content = self._body(case.media_type, body)
        if self._rng.random() < self._spoilt:
            headers |= self._rng.choice(HEADERS)
        return Asked(
            method=case.method.upper(),
            path=case.operation.path,
            address=address,
            headers=headers,
            content=content,
        )

    def _body(self, kind: str, body: Any) -> bytes:
        if kind == FORM and isinstance(body, dict):
            return _form(body).encode()
        content = json.dumps(body).encode()
        return content[: len(content) // 2] if self._rng.random() < self._spoilt / 9 else content

    def _put_all(self, values: Mapping[str, Any]) -> dict[str, Any]:
        there = {name: self._put(name, value) for name, value in values.items()}
        if self._rng.random() < self._spoilt:
            there[_text(self._rng.choice(NASTY))] = self._rng.choice(NASTY)
        return there

    def _put(self, name: str, value: Any) -> Any:
        chance = self._rng.random()
        if chance < self._spoilt:
            return self._rng.choice(NASTY)
        real = self._real.get(f"{self._path} {name}", self._real.get(name))
        if chance < 0.9 and real:
            return self._rng.choice(real)
        if isinstance(value, dict):
            return self._put_all(value)
        return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _escaped(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def _form(values: Mapping[str, Any]) -> str:
    texts = {name: _text(value) for name, value in values.items()}
    return urlencode(texts, errors="surrogatepass")
