"""What a call says in log records and warnings, as far as another author would say it too.

Words are the author's choice. Numbers, and words that the program was given, are not: a call that says "3 of 7 rows
skipped" has to say 3 and 7, and not much else, since a call that says everything says nothing.
"""

import ast
import re
from collections.abc import Iterable
from typing import Any

from gametape.syntax.definitions import last_name
from gametape.syntax.source import parse_or_none
from gametape.verify.fresh.program import Program, argument_fields, parts_of
from gametape.verify.replay.transcript import StandIn

_TOKEN = re.compile(r"[0-9]+(?:\.[0-9]+)?|[^\W\d_]{2,}")
_LISTENING = {
    "records": frozenset({"caplog", "assertLogs", "addHandler", "LogCapture"}),
    "warnings": frozenset({"warns", "recwarn", "assertWarns", "assertWarnsRegex", "catch_warnings", "deprecated_call"}),
}
_MOST_TOKENS = 200
_FACTOR, _MORE = 3, 200
"""An answer may say so many times as much as the reference's, and so many letters more."""
_MORE_NUMBERS = 3
"""It may say as many other numbers as the reference says words and numbers, and so many more."""


def effects_listened_to(test_files: Iterable[bytes]) -> frozenset[str]:
    """What tests look at beside answers: log `records`, `warnings`."""
    names: set[str] = set()
    for content in test_files:
        for node in ast.walk(parse_or_none(content) or ast.Module([], [])):
            if isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.Attribute | ast.Name):
                names.add(last_name(node))
    return frozenset(effect for effect, known in _LISTENING.items() if names & known)


def said(program: Program, effects: Any) -> tuple[tuple[str, ...], int] | None:
    """The numbers and the program's own words in what a call said, and how much it said; None where it said nothing."""
    texts = _texts(effects, program.listens) if type(effects) is dict else []
    if not texts:
        return None
    given = _words_given(program)
    tokens = [token for text in texts for token in tokens_of(text)]
    own = dict.fromkeys(token for token in tokens if token[0].isdigit() or token in given)
    return tuple(own)[:_MOST_TOKENS], sum(map(len, texts))


def heard(answer: tuple[Any, ...]) -> tuple[str, ...]:
    """What an answer that was kept says in log records and warnings."""
    effects = answer[4][2] if answer[4] and len(answer[4]) > 2 else None
    return tuple(effects[0]) if type(effects) is tuple else ()


def tokens_of(text: str) -> list[str]:
    """The numbers and words of a text."""
    return _TOKEN.findall(text[:10_000])


def says_the_same(expected: tuple[tuple[str, ...], int], actual: Any) -> bool:
    """Whether an answer says what the reference's does, and not much more."""
    if type(actual) is not tuple or len(actual) != 2:
        return not expected[0]
    others = [token for token in actual[0] if token[0].isdigit() and token not in expected[0]]
    is_short = actual[1] <= _FACTOR * expected[1] + _MORE and len(others) <= len(expected[0]) + _MORE_NUMBERS
    return {*expected[0]} <= {*actual[0]} and is_short


def _texts(effects: dict[str, Any], listens: frozenset[str]) -> list[str]:
    """The texts of log records and warnings."""
    found: list[str] = []
    for record in effects.get("records", ()) if "records" in listens else ():
        if type(record) is tuple and len(record) == 4 and type(record[2]) is str:
            found.append(record[2])
    for warning in effects.get("warnings", ()) if "warnings" in listens else ():
        if isinstance(warning, StandIn) and type(warning.payload) is tuple and len(warning.payload) > 3:
            found.append(str(warning.payload[3]))
    return found


def _words_given(program: Program) -> frozenset[str]:
    return frozenset(
        token
        for step in program.steps
        for index in argument_fields(step.operation, step.fields)
        for _, part in parts_of(step.fields[index])
        if type(part) is str
        for token in tokens_of(part)
    )
