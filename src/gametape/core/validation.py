"""What is wrong with a document, said in its own terms: where in it, and what was expected there."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

Location = tuple[str | int, ...]
Fault = tuple[Location, str]

MAX_PROBLEMS = 100
"""A list of a million wrong numbers is one mistake: its first hundred say enough."""

MAX_KEY_LENGTH = 80


class Problem(NamedTuple):
    """One thing wrong: where (`steps[3].metrics.logprobs[2]`; empty: all of it) and what belongs there."""

    path: str
    expected: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}" if self.path else f"expected {self.expected}"


def format_location(location: Iterable[str | int]) -> str:
    """Spell a location the way one would type it; keys that are not plain words are quoted, on one line."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,79}", part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part[:MAX_KEY_LENGTH])}]"
    return text


def raise_faults(faults: Sequence[Fault]) -> NoReturn:
    """Raise from inside a model's validator, so that each fault keeps its own place in the whole document."""
    raise ValidationError.from_exception_data(
        "rules",
        [
            InitErrorDetails(
                type=PydanticCustomError("rule", "Input should be {text}", {"text": text}),
                loc=place,
                input=None,
            )
            for place, text in faults
        ],
    )


def problems_from(error: ValidationError, document: Any) -> list[Problem]:
    """Say a validation error in the document's terms, one problem per place, at most the first hundred."""
    found: dict[str, str] = {}
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        path = format_location(_in_document(fault["loc"], document))
        expected = _expected(fault["type"], fault["msg"])
        if path not in found and len(found) == MAX_PROBLEMS:
            break
        found[path] = f"{found[path]} or {expected}" if path in found and expected not in found[path] else expected
    return [Problem(path, expected) for path, expected in found.items()]


def _in_document(location: Location, document: Any) -> Iterable[str | int]:
    """Leave out the parts of a location that name a branch of a union, not a place."""
    here = document
    for index, part in enumerate(location):
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            is_missing_key = isinstance(here, dict) and index == len(location) - 1
            if not is_missing_key:
                continue
        yield part


def _expected(kind: str, message: str) -> str:
    if kind == "missing":
        return "a value (this field is required)"
    if kind == "extra_forbidden":
        return "no such field"
    return message.removeprefix("Input should be ").removeprefix("Value error, ")
