"""Strict JSON: what may be written to a trajectory file, and all that is accepted from one.

Reading and writing share one rule, so whatever was written can be read again: UTF-8, finite numbers, no half
of a surrogate pair, no key twice, no nesting that would exhaust a stack.
"""

import json
import math
from typing import Any

from gametape.core.validation import Location, Problem, format_location

MAX_NESTING = 200
"""Levels of nesting. Real trajectories have about ten; parsers fall over at about a thousand."""


class InvalidJson(Exception):
    """Carries the first problem that keeps something from being plain JSON."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def decode(data: bytes, *, first_line: int = 1, location: Location = ()) -> Any:
    """Read one JSON document that starts on `first_line` of a file and belongs at `location` of a larger document."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise InvalidJson(Problem(f"line {first_line}", "UTF-8 without a byte order mark"))
    try:
        document = json.loads(data.decode(), object_pairs_hook=_without_repeated_keys)
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise InvalidJson(Problem(f"line {line}", f"UTF-8 (byte {error.start} is not)")) from None
    except json.JSONDecodeError as error:
        where = f"line {first_line + error.lineno - 1}, column {error.colno}"
        raise InvalidJson(Problem(where, f"JSON ({error.msg})")) from None
    except RecursionError:
        raise InvalidJson(Problem(format_location(location), f"at most {MAX_NESTING} levels of nesting")) from None
    except ValueError:
        raise InvalidJson(Problem(format_location(location), "integers of at most 4300 digits")) from None
    _refuse_flaws(document, location)
    return document


def encode(document: Any, *, location: Location = ()) -> bytes:
    """Write one JSON document as one line. Refuses whatever `decode` would refuse."""
    _refuse_flaws(document, location)
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise InvalidJson(Problem(format_location(location), f"JSON values only ({error})")) from None


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InvalidJson(Problem(format_location([repeated]), "each key once in an object"))
    return members


def _refuse_flaws(document: Any, location: Location) -> None:
    """Walk without recursion, because too much depth is one of the flaws."""
    waiting: list[tuple[Location, Any]] = [(location, document)]
    while waiting:
        here, value = waiting.pop()
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str) or _is_broken_text(key):
                    raise InvalidJson(Problem(format_location(here), "keys that are whole Unicode text"))
            waiting += [((*here, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            if not set(map(type, value)) <= {int, bool}:
                waiting += [((*here, index), item) for index, item in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            raise InvalidJson(Problem(format_location(here), "a finite number"))
        elif isinstance(value, str) and _is_broken_text(value):
            raise InvalidJson(Problem(format_location(here), "whole Unicode text (no half of a surrogate pair)"))
        if len(here) > MAX_NESTING:
            raise InvalidJson(Problem(format_location(here[:3]), f"at most {MAX_NESTING} levels of nesting"))


def _is_broken_text(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
