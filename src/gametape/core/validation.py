"""Validation errors in terms of the document: the location in it, and what was expected there."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

Location = tuple[str | int, ...]
Fault = tuple[Location, str]

MAX_PROBLEMS = 100
"""The most problems that are reported for one document."""

MAX_KEY_LENGTH = 80

NO_SUCH_FIELD = "no such field"
"""What is expected where a document has a field that its type has not."""


class Problem(NamedTuple):
    """One problem: its path (`steps[3].metrics.logprobs[2]`; empty for all of it) and what is expected there."""

    path: str
    expected: str

    def __str__(self) -> str:
        if self.path and self.expected == NO_SUCH_FIELD:
            return f"{self.path}: there is no such field"
        return f"{self.path}: expected {self.expected}" if self.path else f"expected {self.expected}"


def format_location(location: Iterable[str | int]) -> str:
    """A location as one would type it, on one line. Keys that are not plain words are quoted."""
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
    """Raise from inside a model's validator, so that each fault keeps its location in the whole document."""
    raise ValidationError.from_exception_data(
        "rules",
        [
            InitErrorDetails(
                type=PydanticCustomError("rule", "Input should be {text}", {"text": text}),
                loc=location,
                input=None,
            )
            for location, text in faults
        ],
    )


def problems_from(error: ValidationError, document: Any) -> list[Problem]:
    """A validation error in the document's terms: one problem per location, at most the first hundred."""
    problems: dict[str, str] = {}
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        path = format_location(_in_document(fault["loc"], document))
        expected = _expected(fault["type"], fault["msg"])
        if path not in problems and len(problems) == MAX_PROBLEMS:
            break
        known = problems.get(path)
        problems[path] = f"{known} or {expected}" if known and expected not in known else expected
    return [Problem(path, expected) for path, expected in problems.items()]


def _in_document(location: Location, document: Any) -> Iterable[str | int]:
    """Leave out the parts of a location that name a branch of a union."""
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
        return NO_SUCH_FIELD
    return message.removeprefix("Input should be ").removeprefix("Value error, ")
