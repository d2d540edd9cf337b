"""What a server has refused of its requests: a parameter is left out, renamed or lowered, and the request repeated.

Servers that speak one protocol differ in what they take, and say so in an error that names the parameter. What was
learnt holds for the model from then on.
"""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from gametape.engines.errors import ContextTooLong, EngineError

T = TypeVar("T")
_OPTIONAL = (
    "top_k",
    "seed",
    "top_p",
    "temperature",
    "stream_options",
    "parallel_tool_calls",
    "tool_choice",
    "reasoning_effort",
    "cache_control",
    "output_config",
    "reasoning",
    "thinking",
)
_STREAM = ("stream", "stream_options")
_IN_MESSAGES = ("reasoning_content", "reasoning_details", "reasoning")
_MARK = "cache_control"
"""The only parameter that stands inside of messages and tools as well."""
_BOUNDS = ("max_tokens", "max_completion_tokens")
_REFUSING_STATUS = {None, 400, 404, 422}
_LEAST_BOUND = 128
_LEAST_ROOM = 512
"""A turn that would have less room than this is not asked for: the conversation is too long."""
_MAX_CHANGES = 12
_TOO_MUCH = re.compile(
    r">|at most|maximum|less than|range|too (large|big|high)|exceed|cannot be (larger|greater)|limit"
)


class RefusedParameters:
    """The parameters that a model's server does not take. `changes` says what is done about each, in one line."""

    renames_bound = True
    """Whether the protocol has two names for the largest number of tokens."""
    streams_always = False
    """Whether answers are only taken as a stream."""

    def __init__(self) -> None:
        self.changes: dict[str, str] = {}
        self._dropped: set[str] = set()
        self._dropped_in_messages: set[str] = set()
        self._bound_name: str | None = None
        self._bound: int | None = None
        self._window: int | None = None

    def window_within(self, window: int) -> int:
        """The model's window: the one given, or what the server has said since, whichever is smaller."""
        return min(window, self._window or window)

    def shape(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request as the server takes it."""
        shaped = {name: value for name, value in body.items() if name not in self._dropped}
        if _MARK in self._dropped:
            shaped = _without_marks(shaped)
        for name in _BOUNDS:
            if name in shaped:
                tokens = shaped.pop(name)
                shaped[self._bound_name or name] = min(tokens, self._bound or tokens)
                break
        if self._dropped_in_messages:
            shaped["messages"] = [
                {name: value for name, value in message.items() if name not in self._dropped_in_messages}
                for message in shaped["messages"]
            ]
        return shaped

    async def send(self, body: dict[str, Any], request: Callable[[dict[str, Any]], Awaitable[T]]) -> T:
        """Send a request, and again without what the server refuses of it. `body` has the bound as `max_tokens`.

        Raises `ContextTooLong` where no smaller bound would make room for a turn.
        """
        for _ in range(_MAX_CHANGES):
            shaped = self.shape(body)
            try:
                return await request(shaped)
            except ContextTooLong as error:
                body = body | {"max_tokens": self._room(error, shaped)}
            except EngineError as error:
                if not self.learn(error, shaped):
                    raise
        return await request(self.shape(body))

    def _room(self, error: ContextTooLong, body: dict[str, Any]) -> int:
        """The bound that fits, by what the server says of its window; that is kept in mind."""
        if error.window is not None and error.window < (self._window or error.window + 1):
            self._window = error.window
            self.changes["window"] = f"the model's window is taken to be {error.window} tokens: the server says so"
        room = error.room(next((int(body[name]) for name in _BOUNDS if name in body), 0))
        if room < _LEAST_ROOM:
            raise error
        return room

    def learn(self, error: EngineError, body: dict[str, Any]) -> bool:
        """Whether this error names something that the request can do without; it does without from now on."""
        if error.kind != "refused" or error.status not in _REFUSING_STATUS:
            return False
        said, blamed = error.detail, set(re.findall(r"\w+", error.parameter or ""))
        return (
            self._learn_bound(said, body) or self._learn_option(said, blamed, body) or self._learn_message(said, body)
        )

    def _learn_option(self, said: str, blamed: set[str], body: dict[str, Any]) -> bool:
        if "temperature" in body and "top_p" in body and "both" in said and _names(said, "top_p"):
            return self._drop("top_p", "not sent: the server refuses it together with temperature")
        present = [name for name in _OPTIONAL if name in body or (name == _MARK and f'"{_MARK}"' in json.dumps(body))]
        named = [name for name in present if name in blamed] or [name for name in present if _names(said, name)]
        if (
            not named
            and "stream" in body
            and not self.streams_always
            and ("stream" in blamed or _names(said, "stream"))
        ):
            self._dropped.update(_STREAM)
            return self._drop("stream", "not asked for: the server refuses it, so an answer comes as a whole")
        return self._drop(named[0]) if named else False

    def _learn_message(self, said: str, body: dict[str, Any]) -> bool:
        for name in _IN_MESSAGES:
            if _names(said, name) and any(name in message for message in body.get("messages", ())):
                self._dropped_in_messages.add(name)
                self.changes[name] = f"{name} of earlier turns is not sent: the server refuses it"
                return True
        return False

    def _drop(self, name: str, why: str = "not sent: the server refuses it") -> bool:
        self._dropped.add(name)
        self.changes[name] = f"{name} is {why}"
        return True

    def _learn_bound(self, said: str, body: dict[str, Any]) -> bool:
        name = next((name for name in _BOUNDS if name in body), None)
        if name is None or not any(_names(said, other) for other in _BOUNDS):
            return False
        asked = int(body[name])
        fitting = [int(number) for number in re.findall(r"\d{1,9}", re.sub(r"(?<=\d),(?=\d{3})", "", said))]
        fitting = [number for number in fitting if _LEAST_BOUND <= number < asked]
        if fitting and _TOO_MUCH.search(said):
            self._bound = max(fitting)
            self.changes["bound"] = f"{name} is at most {self._bound}: the server allows no more"
            return True
        other = _BOUNDS[1 - _BOUNDS.index(name)]
        if not self.renames_bound or self._bound_name is not None or not _names(said, name):
            return False
        self._bound_name = other
        self.changes[name] = f"{name} is sent as {other}: the server wants it so"
        return True


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_marks(item) for name, item in value.items() if name != _MARK}
    return [_without_marks(item) for item in value] if isinstance(value, list) else value


def _names(text: str, parameter: str) -> bool:
    return re.search(rf"(?<![\w-]){parameter}(?![\w-])", text) is not None
