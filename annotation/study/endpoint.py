"""A chat endpoint that speaks OpenAI's protocol: one question in, one reply or one failure out.

It is sent pictures and words alone. Neither a key nor an address nor a body that came back is ever
part of an error or of a log.
"""

import base64
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from annotation.errors import StudyError
from semsim.base.storage.optional import need

ADDRESS, KEY, KEY_FILE = "SEMSIM_VLM_URL", "SEMSIM_VLM_KEY", "SEMSIM_VLM_KEY_FILE"
TIMEOUT = 120.0  # seconds without a word from the endpoint
ANSWER_TOKENS = 1024  # the most that a reply may have: enough to think a little
_CONTENT_FILTER = "content_filter"
_PASSING = (408, 409, 425, 429)  # and all from 500: a later try may succeed
# Headers by which the library tells of this machine, or of an account of its user.
_TELLING = (
    *("OpenAI-Organization", "OpenAI-Project"),
    *(
        f"X-Stainless-{name}"
        for name in (
            *("Arch", "Async", "Lang", "OS", "Package-Version", "Runtime", "Runtime-Version"),
            *("Retry-Count", "Read-Timeout"),
        )
    ),
)
_HINTS = {
    401: f"the key is wrong or missing; set {KEY}, or name its file",
    403: "the key may not use this model",
    404: "there is no such model, or the address is not that of the API (it often ends with /v1)",
    413: "the picture is too large for it",
}


class PassingError(Exception):
    """A failure that a later try may not meet.

    Attributes:
        wait: Seconds that the endpoint asks for; None where it asks for none.
        free: Whether it is known to have cost no tokens.
    """

    def __init__(self, why: str, wait: float | None = None, *, free: bool = False) -> None:
        super().__init__(why)
        self.wait, self.free = wait, free


@dataclass(frozen=True, kw_only=True)
class Reply:
    """Reply to one question.

    Attributes:
        text: None for a refusal.
        tokens: Read and written; None where the endpoint does not count them.
    """

    text: str | None
    tokens: tuple[int, int] | None


def key_of(file: Path | None = None) -> str:
    """Return the key: from `file`, else as the environment has it, else "".

    Raises `StudyError` for a file that cannot be read or has no key of one line.
    """
    named = file or (Path(os.environ[KEY_FILE]) if os.environ.get(KEY_FILE) else None)
    if named is None:
        return _checked(os.environ.get(KEY, "").strip(), f"The variable {KEY}")
    try:
        key = named.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise StudyError(f"The file of the key, {named}, cannot be read: {why}.") from None
    return _checked(key or "\n", f"The file of the key, {named},")


def _checked(key: str, where: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise StudyError(f"{where} should hold the key alone, in one line without blanks.")
    return key


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A model at an address, such as http://127.0.0.1:8000/v1.

    Raises `StudyError` for what is no address or has a key in it, and `MissingExtraError` without
    the client library.

    Attributes:
        tokens: The most that a reply may have.
        timeout: Seconds without a word, after which a call has failed.
    """

    address: str = field(repr=False)
    model: str
    key: str = field(default="", repr=False)
    tokens: int = ANSWER_TOKENS
    timeout: float = TIMEOUT
    _client: Any = field(init=False, repr=False)
    _how: dict[str, int] = field(init=False, repr=False)  # how the limit is called there

    def __post_init__(self) -> None:
        need("openai", "Asking a vision-language model", "vlm")
        from openai import OpenAI  # a second that other commands do without

        _check(self.address)
        for name in ("openai", "httpx", "httpx2", "httpcore"):  # they log addresses
            logging.getLogger(name).setLevel(logging.WARNING)
        client = OpenAI(
            api_key=self.key or "none",  # a local server asks for none
            base_url=self.address,
            timeout=self.timeout,
            max_retries=0,  # each try is a call of the budget
        )
        object.__setattr__(self, "_client", client)
        object.__setattr__(self, "_how", {"max_tokens": self.tokens})

    def ask(self, pictures: Sequence[bytes], words: str) -> Reply:
        """Return the reply to PNG pictures and the words below them.

        Raises `PassingError` for what may pass, `StudyError` for what will not.
        """
        from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError, omit

        try:
            completion = self._client.chat.completions.create(
                model=self.model,
                messages=_messages(pictures, words),
                extra_headers={**dict.fromkeys(_TELLING, omit), "User-Agent": "semsim-studio"},
                **self._how,
            )
            return _reply(completion)
        except APITimeoutError:
            raise PassingError(f"it was silent for {self.timeout:g} s") from None
        except APIConnectionError:
            raise PassingError("there is no connection to it, or it was cut") from None
        except APIStatusError as error:
            return self._of_status(error.status_code, error.response.headers, str(error.body))
        except (OpenAIError, ValueError, TypeError, AttributeError, LookupError):
            raise PassingError("its reply does not follow the protocol") from None

    def _of_status(self, status: int, headers: Mapping[str, str], body: str) -> Reply:
        """The refusal that a status stands for; else raises the failure, without its body."""
        if status in _PASSING or status >= 500:
            why = "it asks for fewer calls" if status == 429 else f"it answered {status}"
            raise PassingError(why, _seconds(headers.get("retry-after", "")), free=True) from None
        if status == 400 and _CONTENT_FILTER in body:
            return Reply(text=None, tokens=(0, 0))
        if status == 400 and "max_completion_tokens" in body and "max_tokens" in self._how:
            self._how.clear()
            self._how["max_completion_tokens"] = self.tokens
            raise PassingError("it calls the limit of a reply otherwise", 0.0, free=True) from None
        hint = _HINTS.get(status, "see its log")
        raise StudyError(f"The endpoint answered {status}: {hint}.") from None


def _check(address: str) -> None:
    parts = urlsplit(address)
    if parts.username or parts.password or parts.query:
        raise StudyError(
            f"The address of the endpoint has a name, a password or a key in it, which others may "
            f"read. Leave it out and set {KEY}."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise StudyError(
            "The address of an endpoint is such as http://127.0.0.1:8000/v1: give it with "
            f"--base-url, or set {ADDRESS}."
        )


def _messages(pictures: Sequence[bytes], words: str) -> list[dict[str, Any]]:
    shown = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_base64(one)}"}}
        for one in pictures
    ]
    return [{"role": "user", "content": [*shown, {"type": "text", "text": words}]}]


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _reply(completion: Any) -> Reply:
    """Raises what a reply of another shape makes Python raise."""
    choice, usage = completion.choices[0], completion.usage
    counts = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
    tokens = tuple(one for one in counts if isinstance(one, int) and one >= 0)
    refused = bool(choice.message.refusal) or choice.finish_reason == _CONTENT_FILTER
    return Reply(
        text=None if refused else str(choice.message.content or ""),
        tokens=(tokens[0], tokens[1]) if len(tokens) == 2 else None,
    )


def _seconds(told: str) -> float | None:
    """Seconds of a Retry-After: a number, or the moment until when."""
    try:
        return max(0.0, float(told))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(told) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
