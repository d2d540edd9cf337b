"""Turns a server's failures into `EngineError`. Its messages are shown in one line; what we sent is never shown."""

import email.utils
import json
import re
import time
from typing import Any, NoReturn

import httpx

from gametape.engines.errors import EngineError, EngineErrorKind
from gametape.engines.server.context_refusals import read_context_refusal
from gametape.engines.server.keys import ServerKey

MAX_MESSAGE_CHARACTERS = 300
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_RETRYABLE_STATUS: dict[int, EngineErrorKind] = {
    408: "timeout",
    409: "server_error",
    425: "server_error",
    429: "rate_limited",
    504: "timeout",
}
_ERROR_TYPES: dict[str, EngineErrorKind] = {
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "timeout_error": "timeout",
    "invalid_request_error": "refused",
    "authentication_error": "refused",
    "permission_error": "refused",
    "not_found_error": "refused",
    "request_too_large": "refused",
}
"""The kinds of error that servers name inside a stream, where there is no status; any other is the server's failure."""


def one_line(text: str) -> str:
    """A server's message as one printable line of at most 300 characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= MAX_MESSAGE_CHARACTERS else line[: MAX_MESSAGE_CHARACTERS - 1] + "…"


def parse_retry_after(value: str | None, now: float | None = None) -> float | None:
    """The seconds that a Retry-After header asks for, as seconds or as a date; None where it has neither."""
    if value is None:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip(), re.ASCII):
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
        return max(0.0, date.timestamp() - (time.time() if now is None else now))
    except (ValueError, OverflowError):
        return None


def error_message(body: bytes, key: ServerKey) -> str:
    """The message in an error's body, wherever the server put it, without the key, however that is written."""
    text = body.decode("utf-8", "replace")
    try:
        document: Any = json.loads(text)
        for name in ("error", "message", "detail"):
            if isinstance(document, dict) and name in document:
                document = document[name]
        text = document if isinstance(document, str) else json.dumps(document)
    except (ValueError, RecursionError):
        pass
    return one_line(key.hide(_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)))


def raise_for_status(status: int, headers: httpx.Headers, body: bytes, server: str, key: ServerKey) -> NoReturn:
    """Raise the error that a status other than 200 means."""
    message = error_message(body, key)
    if 300 <= status < 400:
        raise EngineError("refused", f"{server} redirects elsewhere ({status}), which is not followed: name that URL")
    if too_long := read_context_refusal(f"{server}: {message}", _error_object(body), status):
        raise too_long
    text = f"{server} answered {status}: {message}" if message else f"{server} answered {status}"
    if status in {401, 403}:
        text += f" ({key.explain()})"
    retry_after = _milliseconds(headers.get("retry-after-ms"))
    if retry_after is None:
        retry_after = parse_retry_after(headers.get("retry-after"))
    kind, parameter = _kind_of_status(status), _parameter(body, key)
    raise EngineError(kind, text, retry_after, status=status, parameter=parameter, detail=message)


def raise_for_event(body: bytes, server: str, wasted: int, key: ServerKey) -> NoReturn:
    """Raise the error that an event of a stream reports."""
    message, error = error_message(body, key), _error_object(body)
    if too_long := read_context_refusal(f"{server}: {message}", error, None):
        raise too_long
    code = error.get("code")
    named = [_ERROR_TYPES[str(value)] for value in (error.get("type"), code) if str(value) in _ERROR_TYPES]
    if type(code) is int and 400 <= code < 600:
        named.insert(0, _kind_of_status(code))
    kind = named[0] if named else "server_error"
    raise EngineError(
        kind, f"{server}: {message}", wasted_tokens=wasted, parameter=_parameter(body, key), detail=message
    )


def _kind_of_status(status: int) -> EngineErrorKind:
    return _RETRYABLE_STATUS.get(status, "server_error" if status >= 500 else "refused")


def _error_object(body: bytes) -> dict[str, Any]:
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    inner = document.get("error") if isinstance(document, dict) else None
    return inner if isinstance(inner, dict) else {}


def _parameter(body: bytes, key: ServerKey) -> str | None:
    named = _error_object(body).get("param")
    return key.hide(named) if isinstance(named, str) else None


def _milliseconds(value: str | None) -> float | None:
    if value is None or not re.fullmatch(r"\d{1,12}(\.\d{1,9})?", value.strip(), re.ASCII):
        return None
    return float(value) / 1000


def error_from_http(error: httpx.HTTPError | httpx.StreamError, server: str, begun: bool, wasted: int) -> EngineError:
    """The error that a failure of the connection means; `begun` once the answer's headers had come."""
    kind: EngineErrorKind
    if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError):
        kind, what = "unreachable", "cannot be reached"
    elif isinstance(error, httpx.TimeoutException):
        kind, what = "timeout", "was silent for too long"
    elif begun:
        kind, what = "cut_stream", "broke off in the middle of its answer"
    elif isinstance(error, httpx.RemoteProtocolError | httpx.DecodingError):
        kind, what = "garbled", "did not answer in HTTP, or broke off before it answered"
    else:
        kind, what = "unreachable", "closed the connection"
    return EngineError(kind, f"{server} {what} ({type(error).__name__})", wasted_tokens=wasted)
