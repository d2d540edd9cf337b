"""Reads what a server says about its window when a request does not fit into it, in the words of many servers.

A request does not fit because its prompt alone is too long, or because the prompt and the tokens that are asked for
are too many together. The first needs a shorter conversation; the second only a smaller bound.
"""

import re
from typing import Any

from gametape.engines.errors import ContextTooLong

_MAX_CHARACTERS = 4000
_LEAST_WINDOW = 256
_ERROR_TYPES = {"exceed_context_size_error", "context_length_exceeded"}
_TOO_LONG = re.compile(
    r"context[ _-]?(length|window|size|limit)|maximum (context|model|input) length|max_model_len|\bn_ctx\b|"
    r"too many (input )?tokens|prompt is too long|longer than the (maximum|model)|input (length exceeds|token count)|"
    r"input is too long|when context the overflows|max_tokens must be at least 1, got -|"
    r"tokens \+ `?max_new_tokens",
    re.IGNORECASE,
)
_SUMS = (
    re.compile(r"(?P<prompt>\d+) \+ (?P<asked>\d+) > (?P<window>\d+)"),
    re.compile(r"(?P<prompt>\d+) tokens > (?P<window>\d+) maximum"),
    re.compile(r"must be <= (?P<window>\d+)\. given: (?P<prompt>\d+) `?inputs"),
)
_WINDOWS = (
    re.compile(r"(?:n_ctx|max_model_len)\W{1,4}(\d+)"),
    re.compile(r"(\d+) maximum context length"),
    re.compile(r"(?:context|model|input)(?:'s)? (?:length|window|size|limit)[^\d.;]{0,40}(\d+)"),
    re.compile(r"tokens allowed \((\d+)"),
)
_PROMPTS = (
    re.compile(r"(?:has|contains) (\d+) (?:input )?tokens"),
    re.compile(r"resulted in (\d+) tokens"),
    re.compile(r"requested (\d+) tokens in the (?:messages|prompt)"),
    re.compile(r"(?:request|prompt) \((?:length )?(\d+)"),
    re.compile(r"keep the first (\d+) tokens"),
    re.compile(r"n_keep\W{1,4}(\d+)"),
    re.compile(r"token count (?:\(|of )(\d+)"),
)
_TOTAL = re.compile(r"requested (?:about |a total of )?(\d+) tokens")
_COMPLETION = re.compile(r"(\d+) (?:tokens )?(?:in|for) the (?:completion|output)")
_ABOUT_BOUND = re.compile(r"max_(?:completion_|output_|new_)?tokens|completion|output tokens")
_INEXACT = re.compile(r"requested about")
_AT_LEAST = re.compile(r"at least \d+ input tokens")
_NO_ROOM = re.compile(r"at least 1, got -")


def read_context_refusal(text: str, error: dict[str, Any], status: int | None) -> ContextTooLong | None:
    """The error that a refusal means which is about the window; None for any other. `status` is None in a stream.

    `text` is the server's message, `error` the object that it came in. A server's own failure is taken for one about
    the window only where it says so in numbers.
    """
    said = _said(text, error)
    typed = bool(_ERROR_TYPES & {str(error.get("type")), str(error.get("code"))})
    if status not in {None, 400, 413, 422, 500, 502} or not (typed or _TOO_LONG.search(said)):
        return None
    window, prompt = _counts(said, error)
    if status in {500, 502} and not typed and (window is None or prompt is None):
        return None
    about_bound = bool(_ABOUT_BOUND.search(said)) and not _NO_ROOM.search(said)
    return ContextTooLong(text, window, prompt, about_bound)


def _said(text: str, error: dict[str, Any]) -> str:
    """The message, with that of the provider behind a server that passes requests on."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    said = f"{text} {raw if isinstance(raw, str) else ''}"[:_MAX_CHARACTERS].lower()
    return re.sub(r"(?<=\d),(?=\d{3})", "", said)


def _counts(said: str, error: dict[str, Any]) -> tuple[int | None, int | None]:
    """The window and the tokens of the prompt, as far as they are said."""
    for pattern in _SUMS:
        if found := pattern.search(said):
            return _window(found["window"]), _number(found["prompt"])
    window = _window(error.get("n_ctx")) or _window(_first(_WINDOWS, said))
    if _AT_LEAST.search(said):
        return window, None
    prompt = _number(error.get("n_prompt_tokens")) or _number(_first(_PROMPTS, said))
    total, completion = _number(_first((_TOTAL,), said)), _number(_first((_COMPLETION,), said))
    if prompt is None and total is not None and completion is not None and total >= completion:
        prompt = total - completion
    if prompt is not None and window is not None and _INEXACT.search(said):
        prompt += window // 64
    return window, prompt


def _first(patterns: tuple[re.Pattern[str], ...], said: str) -> str | None:
    return next((found[1] for pattern in patterns if (found := pattern.search(said))), None)


def _number(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value, re.ASCII):
        return int(value)
    return value if type(value) is int and 0 <= value < 10**9 else None


def _window(value: object) -> int | None:
    number = _number(value)
    return number if number is not None and number >= _LEAST_WINDOW else None
