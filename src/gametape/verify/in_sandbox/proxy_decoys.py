"""Decoys: values of the same shape as another one that differ from it.

Where a test compares a handle with plain data, the worker learns the expected value and could claim to be equal to it.
So one request holds the real value and decoys in random order: an object that equals them all is detected, and one that
guesses is mostly wrong.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
import random
import string
from collections.abc import Callable
from typing import Any

_CHANCE = random.SystemRandom()
_WANTED, _WITH_ORDERS = 4, 2
"""Decoys of a value, and of one that has other orders."""


def among_decoys(value: Any) -> tuple[list[Any], int]:
    """A list of a value and decoys, and the position of the value.

    Each decoy is made from its neighbour, and the value may be anywhere in that chain: if all were made from the value,
    it would be the one most similar to all others. Text and sequences are there in other orders too, and so are their
    decoys.
    """
    members = _chain(value, _WITH_ORDERS if reordered(value) else _WANTED)
    for other in [other for member in members for other in reordered(member)]:
        if not any(other == member for member in members):
            members.append(other)
    _CHANCE.shuffle(members)
    return members, next(position for position, member in enumerate(members) if member is value)


def _chain(value: Any, wanted: int) -> list[Any]:
    chain = [value]
    before = _CHANCE.randrange(wanted + 1)
    for number in range(wanted):
        first = number < before
        for _ in range(8):
            other = _other(chain[0] if first else chain[-1])
            if not any(other == member for member in chain):
                chain.insert(0 if first else len(chain), other)
                break
    return chain


def reordered(value: Any, chance: random.Random = _CHANCE) -> list[Any]:
    """The value in other orders, as far as there are any: its words, its letters, its elements. An object that counts
    them equals all of these."""
    if isinstance(value, str):
        by_words = " ".join(_shuffled(value.split(" "), chance))
        by_letters = "".join(_shuffled(list(value), chance))
        return [*dict.fromkeys(text for text in (by_words, by_letters) if text != value)]
    if type(value) not in (list, tuple):
        return []
    mixed = type(value)(_shuffled(list(value), chance))
    return [mixed] if mixed != value else []


def _shuffled(items: list[Any], chance: random.Random) -> list[Any]:
    mixed = list(items)
    for _ in range(4):
        chance.shuffle(mixed)
        if mixed != items:
            break
    return mixed


def _other(value: Any) -> Any:
    change = _CHANGES.get(type(value))
    return _CHANCE.choice((0, "", False)) if change is None else change(value)


def _step() -> int:
    return _CHANCE.choice((-1, 1)) * _CHANCE.randint(1, 9)


def _other_text(text: str) -> str:
    at = _CHANCE.randrange(len(text) or 1)
    old = text[at : at + 1]
    alphabet = next((letters for letters in _ALPHABETS if old in letters), string.ascii_lowercase)
    return text[:at] + _CHANCE.choice(alphabet) + text[at + 1 :]


_ALPHABETS = (string.digits, string.ascii_lowercase, string.ascii_uppercase)


def _other_bytes(data: Any) -> Any:
    at = _CHANCE.randrange(len(data) or 1)
    return type(data)(data[:at] + bytes([_CHANCE.randrange(256)]) + data[at + 1 :])


def _other_sequence(items: Any) -> Any:
    changed = list(items) or [None]
    at = _CHANCE.randrange(len(changed))
    changed[at] = _other(changed[at])
    return type(items)(changed)


def _other_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    changed = dict(value)
    key = _CHANCE.choice(list(changed) or [_CHANCE.choice(string.ascii_lowercase)])
    changed[key] = _other(changed.get(key))
    return changed


def _other_float(value: float) -> float:
    return value + _step() * max(1.0, abs(value)) / 4 if math.isfinite(value) else float(_step())


_CHANGES: dict[type, Callable[[Any], Any]] = {
    bool: lambda value: not value,
    int: lambda value: value + _step(),
    float: _other_float,
    complex: lambda value: complex(_other_float(value.real), value.imag),
    str: _other_text,
    bytes: _other_bytes,
    bytearray: _other_bytes,
    list: _other_sequence,
    tuple: _other_sequence,
    set: _other_sequence,
    frozenset: _other_sequence,
    dict: _other_dict,
    decimal.Decimal: lambda value: value + _step() if value.is_finite() else decimal.Decimal(_step()),
    fractions.Fraction: lambda value: value + _step(),
    datetime.date: lambda value: datetime.date.fromordinal(max(1, value.toordinal() + _step()) % 3652059),
    datetime.datetime: lambda value: value.replace(day=_CHANCE.randint(1, 28)),
    datetime.timedelta: lambda value: value + datetime.timedelta(seconds=_step()),
}
