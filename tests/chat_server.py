"""A server of our own that speaks OpenAI's chat protocol, as well or as badly as a test asks."""

import base64
import io
import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from PIL import Image

KEY = "sk-test-0123456789"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request, as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    number: int  # from 1

    @property
    def parts(self) -> list[dict[str, Any]]:
        (message,) = self.body["messages"]
        return message["content"]

    @property
    def words(self) -> str:
        return self.parts[-1]["text"]

    @property
    def pictures(self) -> tuple[bytes, ...]:
        """The bytes of the pictures it shows."""
        urls = [one["image_url"]["url"] for one in self.parts[:-1]]
        assert all(url.startswith("data:image/png;base64,") for url in urls)
        return tuple(base64.b64decode(url.partition(",")[2], validate=True) for url in urls)

    @property
    def offered(self) -> list[str]:
        """The lines that can be answered, and the title of those that are none."""
        return self.words.split("\n\n")[2].splitlines()


@dataclass(frozen=True, kw_only=True)
class Said:
    """A reply of the server."""

    text: str | None = ""
    status: int = 200
    refusal: str | None = None
    finish: str = "stop"
    usage: tuple[int, int] | None = (100, 5)
    headers: dict[str, str] = field(default_factory=dict)
    error: dict[str, Any] = field(default_factory=dict)
    raw: bytes | None = None
    hang: float = 0.0  # seconds before it answers
    cut: bool = False

    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.status != 200:
            return json.dumps({"error": self.error or {"message": "no"}}).encode()
        message = {"role": "assistant", "content": self.text, "refusal": self.refusal}
        usage = None
        if self.usage is not None:
            read, written = self.usage
            usage = {"prompt_tokens": read, "completion_tokens": written}
            usage["total_tokens"] = read + written
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        told = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        return json.dumps({**told, "choices": [choice], "usage": usage}).encode()


class ChatServer:
    """Answers each request with what `answer` makes of it; `asked` has them all."""

    def __init__(self, answer: Callable[[Asked], Said], key: str = KEY) -> None:
        self.answer, self.key = answer, key
        self.asked: list[Asked] = []
        self.times: list[float] = []
        self.answered: list[Asked] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        here = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: object) -> None:
                pass

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): one for name, one in self.headers.items()}
                asked = here.note(self.path, headers, json.loads(content))
                said = here.said(asked)
                time.sleep(said.hang)
                if said.cut:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                body = said.content()
                try:
                    self.send_response(said.status)
                    for name, value in {"Content-Type": "application/json", **said.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    return
                if said.status == 200:
                    here.answered.append(asked)

        return Handler

    def note(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Asked:
        with self._lock:
            asked = Asked(path=path, headers=headers, body=body, number=len(self.asked) + 1)
            self.asked.append(asked)
            self.times.append(time.monotonic())
        return asked

    def said(self, asked: Asked) -> Said:
        if asked.headers.get("authorization") != f"Bearer {self.key}":
            return Said(status=401, error={"message": f"Incorrect API key: {asked.headers}"})
        return self.answer(asked)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True, args=(0.01,)).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(answer: Callable[[Asked], Said] | str, key: str = KEY):
    """A server, which answers each question with that text where it is given one."""
    said = answer if callable(answer) else lambda asked: Said(text=answer)
    with ChatServer(said, key) as server:
        yield server


def first_word(asked: Asked) -> Said:
    """The first word that is offered."""
    return Said(text=asked.offered[0])


def pixels(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))
