"""Steps from third-party JSON: messages of chat APIs, bare or wrapped, whole conversations, one event a line.

A call and its result are often two records. A step whose calls have no result yet waits for the records that bring it,
and for the rest of its own message where that comes in parts; the agent's next message ends the waiting.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from gametape.watch.observed_step import ObservedStep, observed_step_from_record, plain_text

Record = dict[str, Any]

_ROLES = ("role", "source", "from")
_AGENTS = ("agent", "assistant", "ai", "gpt", "model", "agent_message", "assistant_message")
_TOOLS = ("tool", "function", "observation")
_OTHERS = ("user", "human", "system", "developer", "user_message", "reasoning", "thinking", "redacted_thinking")
_CALLS = ("tool_use", "server_tool_use", "tool_call", "tool-call", "function_call", "custom_tool_call")
_PARTED = ("message", "agent_message", "assistant_message")
"""Events with a message's text, whose calls are events of their own."""
_RESULTS = ("tool_result", "tool-result", "tool_output", "function_call_output", "custom_tool_call_output")
_WRAPPERS = ("message", "payload", "item", "response", "data")
_CONVERSATIONS = ("messages", "conversations")
_TEXTS = ("text", "content", "parts", "message", "msg", "response", "completion", "output", "value")
_RESULT_KEYS = ("content", "output", "result", "response", "text")
_TIMES = ("time", "timestamp", "ts", "created_at", "created")
_MOST_CALLS = 16
"""At most so many calls of one message that comes in parts."""
_SESSIONS = ("session", "session_id", "sessionId", "conversation_id", "thread_id")


class ThirdPartyLogParser:
    """Parses one log. `known` and `unknown` count the records with and without a recognised speaker."""

    def __init__(self) -> None:
        self.known = self.unknown = 0
        self._conversation: list[Any] = []
        self._conversations = 0
        self._waiting: tuple[int, Record] | None = None
        self._results: list[str] = []

    def steps(self, records: Iterable[tuple[int, Record]]) -> Iterator[tuple[int, ObservedStep]]:
        """The agent's steps, each with the number of the record it began with."""
        for number, record in records:
            for message in self._messages(record):
                yield from self._step(number, message)
        yield from self._flush()

    def _messages(self, record: Record) -> Iterator[Record]:
        """A record is one message, unless it is a conversation; what it repeats of the one before is dropped."""
        messages = _first(record, _CONVERSATIONS)
        if not isinstance(messages, list) or any(key in record for key in ("response", "choices")):
            yield _unwrapped(record)
            return
        pairs = zip(messages, self._conversation, strict=False)
        repeated = next(
            (at for at, (new, old) in enumerate(pairs) if new != old), min(len(messages), len(self._conversation))
        )
        if repeated < len(self._conversation) or not repeated:
            self._conversations += 1
        self._conversation = messages
        context_fields = {key: value for key, value in record.items() if key not in _CONVERSATIONS}
        context = {"session": f"conversation {self._conversations}"} | context_fields
        for message in messages[repeated:]:
            if isinstance(message, dict):
                yield _unwrapped(context | message)

    def _step(self, number: int, message: Record) -> Iterator[tuple[int, ObservedStep]]:
        speaker = _speaker(message)
        self.known += speaker is not None
        self.unknown += speaker is None
        if speaker == "agent":
            step = _agent_record(message)
            if self._waiting and _continues(self._waiting[1], step):
                self._waiting[1]["text"] += step["text"]
                self._waiting[1]["tool_calls"] += step["tool_calls"]
            else:
                yield from self._flush()
                self._waiting = number, step
        if self._waiting:
            self._results += _results_in(message, speaker)
            step = self._waiting[1]
            lacking = not step["has_result"] and len(self._results) < len(step["tool_calls"])
            if not lacking and (not step["in_parts"] or speaker in ("tool", "other")):
                yield from self._flush()

    def _flush(self) -> Iterator[tuple[int, ObservedStep]]:
        if self._waiting:
            number, step = self._waiting
            if self._results and step["result"] is None:
                step["result"] = "\n".join(self._results)
            self._waiting, self._results = None, []
            yield number, observed_step_from_record(step)


def _continues(step: Record, part: Record) -> bool:
    """Whether this is a further part of the last message: calls after its text, or with the same message id."""
    if step["text"] and part["text"]:
        return False
    if part["turn"] is not None and part["turn"] == step["turn"]:
        return len(step["tool_calls"]) < _MOST_CALLS
    return bool(step["in_parts"] and part["bare_call"] and not step["tool_calls"])


def _unwrapped(record: Record) -> Record:
    """A message merged with the fields of its wrappers."""
    for _ in range(3):
        choices = record.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            record = {key: value for key, value in record.items() if key != "choices"} | choices[0]
        key = next((key for key in _WRAPPERS if isinstance(record.get(key), dict)), None)
        if key is None or isinstance(_first(record, ("text", "content")), str):
            break
        record = {name: value for name, value in record.items() if name != key} | record[key]
    return record


def _speaker(message: Record) -> Literal["agent", "tool", "other"] | None:
    """Who wrote a message; None for a record without a message."""
    role_given = next((message[key] for key in _ROLES if message.get(key)), None)
    role = str(role_given or _kind(message)).lower()
    if role in _AGENTS or role in _CALLS:
        return "agent"
    if role in _TOOLS or role in _RESULTS:
        return "tool"
    if role_given or role in _OTHERS:
        return "other"
    return "agent" if any(key in message for key in (*_TEXTS, "tool_calls", "tool", "tool_name")) else None


def _kind(part: Record) -> str:
    return next((part[key] for key in ("type", "event") if isinstance(part.get(key), str)), "")


def _agent_record(message: Record) -> Record:
    """An agent's message as a record in our own format."""
    content = _first(message, _TEXTS)
    parts = content if isinstance(content, list) else [content]
    calls = [call for part in parts if (call := _call_in(part)) is not None]
    given = message.get("tool_calls")
    if isinstance(given, list):
        calls += [call for call in given if isinstance(call, str | dict)]
    elif _kind(message) in _CALLS or isinstance(_first(message, ("tool", "tool_name")), str):
        calls.append(message)
    elif isinstance(message.get("function_call"), dict):
        calls.append(message["function_call"])
    turn = message.get("id") if isinstance(content, list) and isinstance(message.get("id"), str) else None
    return {
        "text": "" if _kind(message) in _CALLS else "\n".join(filter(None, map(_text_of, parts))),
        "tool_calls": calls,
        "result": _result_of(message),
        "has_result": "result" in message or "observation" in message,
        "model": _first(message, ("model", "model_name")),
        "session": _first(message, _SESSIONS),
        "time": _first(message, _TIMES),
        "tokens": _tokens(message),
        "cost_usd": _cost(message),
        "turn": turn,
        "in_parts": turn is not None or _kind(message) in _PARTED,
        "bare_call": _kind(message) in _CALLS,
    }


def _first(record: Record, keys: Iterable[str]) -> Any:
    return next((record[key] for key in keys if record.get(key) is not None), None)


def _call_in(part: Any) -> Any:
    if not isinstance(part, dict):
        return None
    call = part.get("functionCall") or part.get("function_call")
    return call if isinstance(call, dict) else part if _kind(part) in _CALLS else None


def _text_of(part: Any) -> str:
    """A part's text; thoughts, calls, results and images have none."""
    if not isinstance(part, dict):
        return plain_text(part)
    if _kind(part) in (*_OTHERS, *_RESULTS) or _call_in(part) is not None:
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else "" if _kind(part) else plain_text(part)


def _results_in(message: Record, speaker: str | None) -> Iterator[str]:
    """The results of tools in a message: the whole message, or parts of one."""
    if speaker == "tool":
        yield plain_text(_first(message, _RESULT_KEYS))
    content = message.get("content")
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict) and _kind(part) in _RESULTS:
            yield plain_text(_first(part, _RESULT_KEYS))


def _result_of(message: Record) -> Any:
    """The result, where the message with the call has it."""
    observed = message.get("observation")
    if isinstance(observed, dict) and isinstance(observed.get("results"), list):
        return "\n".join(
            plain_text(_first(result, _RESULT_KEYS)) for result in observed["results"] if isinstance(result, dict)
        )
    return message.get("result") if observed is None else observed


def _tokens(message: Record) -> Any:
    if "tokens" in message:
        return message["tokens"]
    usage = _first(message, ("usage", "metrics"))
    if not isinstance(usage, dict):
        return None
    asked, answered = (
        _first(usage, keys) for keys in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
    )
    counts = [count for count in (asked, answered) if isinstance(count, int)]
    return sum(counts) if counts else usage.get("total_tokens")


def _cost(message: Record) -> Any:
    metrics = message.get("metrics")
    return _first(message, ("cost_usd", "cost")) or (metrics.get("cost_usd") if isinstance(metrics, dict) else None)
