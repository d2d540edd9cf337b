"""Change plain data so that it stays in the domain: the same types in the same places, fields that keep their names."""

import datetime
import decimal
import fractions
import json
import random
from collections.abc import Callable
from typing import Any

from gametape.verify.fresh.corpus import Place, PlaceValues, ValueCorpus, children, is_plain
from gametape.verify.fresh.text_edits import TextEdits

_MOST_DEPTH = 12
_MOST_ELEMENTS = 64
Change = tuple[Any, Any]
"""A leaf before and after."""


class ValueEdits:
    """Edits of values, with chance and corpus given."""

    def __init__(self, corpus: ValueCorpus, drawn: dict[Place, list[Any]], rng: random.Random) -> None:
        self._corpus = corpus
        self._drawn = drawn
        self._rng = rng
        self.changes: list[Change] = []
        """The leaves that were changed."""

    def edit(self, value: Any, place: Place, depth: int = 0) -> Any:
        """Another value for this place, or the same one where none is known."""
        seen = self._corpus.at(place)
        if depth < _MOST_DEPTH and is_plain(value):
            chance = self._rng.random()
            same_type = [other for other in seen.values if type(other) is type(value) or other is None]
            if value is None or (chance < 0.12 and len(same_type) > 1):
                return self._rng.choice(seen.values or [value])
            drawn = self._drawn.get(place)
            if chance > 0.85 and drawn:
                return self._rng.choice(drawn)
        new = self._edited(value, place, seen, depth)
        if not isinstance(value, (list, tuple, dict, set, frozenset)):
            self.changes.append((value, new))
        return new

    def _edited(self, value: Any, place: Place, seen: PlaceValues, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value, place, seen, depth)
        if kind is list:
            return self._list(value, place, seen, depth)
        if kind is tuple:
            return self._tuple(value, place, seen, depth)
        if kind is dict:
            return self._dict(value, place, seen, depth)
        if kind in (set, frozenset):
            return self._set(value, place, seen, depth)
        edit = _SCALARS.get(kind)
        return value if edit is None else edit(value, seen, self._rng)

    def _text(self, text: str, place: Place, seen: PlaceValues, depth: int) -> str:
        if text.startswith(("/", "~")) and " " not in text:
            return text  # a file of the sandbox
        if text[:1] in ("{", "[") and depth < _MOST_DEPTH:
            try:
                document = json.loads(text)
            except (ValueError, RecursionError):
                document = None
            if document:
                self._corpus._learn_value((*place, "json"), document)
                return json.dumps(
                    self._edited(document, (*place, "json"), self._corpus.at((*place, "json")), depth + 1)
                )
        return TextEdits(seen, self._rng).edit(text)

    def _element(self, place: Place, depth: int, like: list[Any]) -> Any:
        """A new element: one of the same place, changed or not."""
        pool = self._corpus.at(place).values or [item for item in like if is_plain(item)]
        if not pool:
            return self._rng.choice(like)
        value = self._rng.choice(pool)
        return self.edit(value, place, depth + 1) if self._rng.random() < 0.5 else value

    def _list(self, items: list[Any], place: Place, seen: PlaceValues, depth: int) -> list[Any]:
        rng, inner = self._rng, (*place, "[]")
        lists = [other for other in seen.of_type(list) if other] or [items]
        if not items:
            return list(rng.choice(lists))
        at = rng.randrange(len(items))
        actions: dict[Callable[[], list[Any]], int] = {
            lambda: [
                self.edit(item, inner, depth + 1) if index == at else item for index, item in enumerate(items)
            ]: 40,
            lambda: [self.edit(item, inner, depth + 1) for item in items[:_MOST_ELEMENTS]]: 10,
            lambda: rng.sample(items, len(items)): 10,
            lambda: items[at : at + rng.randint(1, len(items))]: 8,
            lambda: [*items[:at], self._element(inner, depth, items), *items[at:]]: 10,
            lambda: [*items, items[at]]: 6,
            lambda: [*items, *rng.choice(lists)][:_MOST_ELEMENTS]: 6,
            lambda: self._ordered(items): 5,
            lambda: [self._element(inner, depth, items) for _ in range(rng.randint(1, min(12, len(items) + 3)))]: 5,
        }
        return rng.choices(list(actions), list(actions.values()))[0]()

    def _ordered(self, items: list[Any]) -> list[Any]:
        try:
            return sorted(items, reverse=self._rng.random() < 0.5)
        except TypeError:
            return items[::-1]

    def _tuple(self, items: tuple[Any, ...], place: Place, seen: PlaceValues, depth: int) -> tuple[Any, ...]:
        if not items:
            return items
        lengths = {len(other) for other in seen.of_type(tuple)}
        if len(lengths) > 2 and self._rng.random() < 0.4:
            kept = self._rng.sample(items, self._rng.randint(1, len(items)))
            return (*kept, *self._rng.choice(seen.of_type(tuple))[: self._rng.randrange(3)])
        at = self._rng.randrange(len(items))
        return tuple(
            self.edit(item, (*place, "()", index), depth + 1) if index == at else item
            for index, item in enumerate(items)
        )

    def _dict(self, value: dict[Any, Any], place: Place, seen: PlaceValues, depth: int) -> dict[Any, Any]:
        rng = self._rng
        parts = list(children(place, value))
        if not parts:
            others = [other for other in seen.of_type(dict) if other]
            return dict(rng.choice(others)) if others else value
        action = rng.random()
        if action < 0.6:
            inner, chosen, _ = rng.choice(parts)
            return {key: self.edit(item, inner, depth + 1) if key == chosen else item for key, item in value.items()}
        if action < 0.7:
            places = {key: inner for inner, key, _ in parts}
            return {key: self.edit(item, places[key], depth + 1) for key, item in value.items()}
        if action < 0.8:
            optional = [key for key in value if any(key not in other for other in seen.of_type(dict))]
            gone = rng.choice(optional) if optional else None
            return {key: item for key, item in value.items() if not optional or key != gone}
        if action < 0.9:
            return {**value, **rng.choice(seen.of_type(dict) or [value])}
        return dict(rng.sample(list(value.items()), len(value)))

    def _set(self, items: Any, place: Place, seen: PlaceValues, depth: int) -> Any:
        as_list = sorted(items, key=repr)
        changed = self._list(as_list, place, seen, depth) if as_list else as_list
        try:
            return type(items)(changed)
        except TypeError:
            return items


def _integer(value: int, seen: PlaceValues, rng: random.Random) -> int:
    numbers = seen.of_type(int) or [value]
    low, high = min(numbers), max(numbers)
    choice = rng.random()
    if choice < 0.35:
        new = value + rng.choice((-3, -2, -1, 1, 2, 3))
    elif choice < 0.65:
        new = rng.randint(low, high)
    elif choice < 0.8:
        new = rng.randint(low, high + max(4, high - low))
    elif choice < 0.9:
        new = value * rng.choice((2, 3, 10)) + rng.choice((0, 1))
    else:
        new = rng.choice((0, 1, 2, -1, 7, 10, 16, 64, 100, 255, 1000))
    if low >= 0 > new:
        return -new
    return (rng.randint(max(1, low), high) if high >= max(1, low) else value) if low > 0 and new == 0 else new


def _float(value: float, seen: PlaceValues, rng: random.Random) -> float:
    numbers = [number for number in seen.of_type(float) if abs(number) < 1e15] or [value]
    if not abs(value) <= 1e15:
        return float(rng.choice(numbers))
    low, high = min(numbers), max(numbers)
    digits = len(repr(value).partition(".")[2])
    choice = rng.random()
    if choice < 0.5:
        new = rng.uniform(low, high + (high - low) * 0.3 + (abs(value) or 1.0) * 0.3)
    elif choice < 0.8:
        new = value * rng.choice((0.5, 2.0, 3.0, 1.25)) + rng.choice((0.0, 0.5, 1.0))
    else:
        new = float(round(value)) + rng.choice((0.0, 1.0, 2.5))
    new = round(new, min(digits, 6) if digits else 1)
    return abs(new) if low >= 0 else new


def _bool(value: bool, seen: PlaceValues, rng: random.Random) -> bool:
    return bool(rng.choice(seen.of_type(bool) or [value]))


def _bytes(value: Any, seen: PlaceValues, rng: random.Random) -> Any:
    texts = PlaceValues()
    for other in [value, *seen.of_type(type(value))]:
        texts.add(bytes(other).decode("latin-1"))
    if bytes(value).isascii():
        return type(value)(TextEdits(texts, rng).edit(bytes(value).decode("latin-1")).encode("latin-1", "replace"))
    changed = bytearray(value)
    changed[rng.randrange(len(changed))] = rng.randrange(256)
    return type(value)(changed)


def _date(value: datetime.date, _: PlaceValues, rng: random.Random) -> datetime.date:
    return value + datetime.timedelta(days=rng.choice((-400, -31, -1, 1, 2, 30, 365, rng.randint(-2000, 2000))))


def _datetime(value: datetime.datetime, _: PlaceValues, rng: random.Random) -> datetime.datetime:
    step = datetime.timedelta(
        days=rng.choice((0, 0, 1, -1, 30, rng.randint(-900, 900))), seconds=rng.randint(-90000, 90000)
    )
    try:
        return value + step
    except OverflowError:
        return value


def _time(value: datetime.time, _: PlaceValues, rng: random.Random) -> datetime.time:
    return value.replace(hour=rng.randrange(24), minute=rng.randrange(60))


def _timedelta(value: datetime.timedelta, seen: PlaceValues, rng: random.Random) -> datetime.timedelta:
    new = value * rng.choice((2, 3)) + datetime.timedelta(seconds=rng.choice((0, 1, 59, 60, 3600)))
    return new if rng.random() < 0.6 else new + rng.choice(seen.of_type(datetime.timedelta) or [new])


def _decimal(value: decimal.Decimal, seen: PlaceValues, rng: random.Random) -> decimal.Decimal:
    texts = PlaceValues()
    for other in [value, *seen.of_type(decimal.Decimal)]:
        texts.add(str(other))
    try:
        return decimal.Decimal(TextEdits(texts, rng).edit(str(value)))
    except decimal.InvalidOperation:
        return value


def _fraction(value: fractions.Fraction, _: PlaceValues, rng: random.Random) -> fractions.Fraction:
    return value + fractions.Fraction(rng.randint(-5, 5), rng.randint(1, 12))


_SCALARS: dict[type, Callable[[Any, PlaceValues, random.Random], Any]] = {
    int: _integer,
    float: _float,
    bool: _bool,
    bytes: _bytes,
    bytearray: _bytes,
    datetime.date: _date,
    datetime.datetime: _datetime,
    datetime.time: _time,
    datetime.timedelta: _timedelta,
    decimal.Decimal: _decimal,
    fractions.Fraction: _fraction,
}
