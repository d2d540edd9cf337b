"""Values drawn with Hypothesis, from strategies that are inferred from what was seen at a place.

Numbers stay in the range that was seen, texts keep the pattern of one that was seen, and containers keep their shape.
"""

import datetime
import re
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from gametape.verify.fresh.corpus import TOKEN, Place, PlaceValues, ValueCorpus, is_plain
from gametape.verify.fresh.text_edits import DATE, shifted_date

_MOST_TEMPLATES = 12
_LONGEST_TEMPLATE = 1000
"""Longer texts stay as they are: Hypothesis has no room for them, nor has Python for their numbers."""
_MOST_DEPTH = 4
_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def draw_values(strategy: st.SearchStrategy[Any], count: int, seed_value: int) -> list[Any]:
    """Up to this many different values of a strategy; the same ones for the same seed."""
    drawn: dict[str, Any] = {}

    @seed(seed_value)
    @settings(
        max_examples=count, database=None, deadline=None, phases=(Phase.generate,), suppress_health_check=[*HealthCheck]
    )
    @given(strategy)
    def collect(value: Any) -> None:
        drawn.setdefault(repr(value), value)

    collect()
    return list(drawn.values())


def infer_strategy(corpus: ValueCorpus, place: Place, depth: int = 0) -> st.SearchStrategy[Any] | None:
    """A strategy for the values of a place, or None where there is none for its types."""
    seen = corpus.at(place)
    by_type: dict[type, list[Any]] = {}
    for value in seen.values:
        by_type.setdefault(type(value), []).append(value)
    strategies = [
        strategy
        for kind, values in by_type.items()
        if (strategy := _of_type(corpus, place, seen, kind, values, depth)) is not None
    ]
    return st.one_of(strategies) if strategies else None


def _of_type(
    corpus: ValueCorpus, place: Place, seen: PlaceValues, kind: type, values: list[Any], depth: int
) -> st.SearchStrategy[Any] | None:
    if kind is str:
        return _texts(seen)
    if kind in _SCALARS:
        return _SCALARS[kind](values)
    if kind in (list, tuple, set, frozenset, dict) and depth < _MOST_DEPTH:
        return _containers(corpus, place, kind, values, depth)
    return st.sampled_from(values)


def _floats(values: list[float]) -> st.SearchStrategy[float]:
    finite = [value for value in values if abs(value) < 1e15]
    if not finite:
        return st.sampled_from(values)
    return st.floats(min(finite), max(finite), allow_nan=False).map(lambda value: round(value, 4))


_SCALARS: dict[type, Callable[[list[Any]], st.SearchStrategy[Any]]] = {
    int: lambda values: st.integers(min(values), max(values) + max(3, (max(values) - min(values)) // 2)),
    float: _floats,
    datetime.date: lambda values: st.dates(min(values), max(values)),
    datetime.timedelta: lambda values: st.timedeltas(min(values), max(values)),
}


def _containers(
    corpus: ValueCorpus, place: Place, kind: type, values: list[Any], depth: int
) -> st.SearchStrategy[Any] | None:
    if kind is dict:
        return _dicts(corpus, place, values, depth)
    sizes = [len(value) for value in values]
    if kind is tuple:
        parts = [infer_strategy(corpus, (*place, "()", index), depth + 1) for index in range(max(sizes))]
        known = [part for part in parts if part is not None]
        return st.tuples(*known) if len(set(sizes)) == 1 and len(known) == len(parts) else st.sampled_from(values)
    elements = infer_strategy(corpus, (*place, "[]" if kind is list else "{}"), depth + 1)
    if elements is None:
        return st.sampled_from(values)
    return st.lists(elements, min_size=min(sizes), max_size=max(sizes) + 2).map(kind)


def _dicts(
    corpus: ValueCorpus, place: Place, values: list[dict[Any, Any]], depth: int
) -> st.SearchStrategy[Any] | None:
    """Dicts with the fields of one that was seen, and values as they were seen at each field."""
    named = [value for value in values if value and all((*place, "{}", key) in corpus.places for key in value)]
    shapes = []
    for value in named[:_MOST_TEMPLATES]:
        fields = {key: infer_strategy(corpus, (*place, "{}", key), depth + 1) for key in value}
        if all(strategy is not None for strategy in fields.values()):
            shapes.append(st.fixed_dictionaries({key: part for key, part in fields.items() if part is not None}))
    return st.one_of(shapes) if shapes else st.sampled_from(values)


def _texts(seen: PlaceValues) -> st.SearchStrategy[str]:
    """Texts with the pattern of one that was seen: numbers and free words differ, everything else stays."""
    if seen.is_choice:
        return st.sampled_from(seen.texts)
    return st.one_of([_template(text, seen) for text in seen.texts[:_MOST_TEMPLATES]])


def _template(text: str, seen: PlaceValues) -> st.SearchStrategy[str]:
    if DATE.search(text):
        return st.integers(-1000, 1000).map(lambda days: DATE.sub(lambda date: shifted_date(date.group(), days), text))
    tokens = TOKEN.findall(text)
    if len(tokens) > 80 or len(text) > _LONGEST_TEMPLATE:
        return st.just(text)
    return st.tuples(*[_token(token, seen) for token in tokens]).map("".join)


def _token(token: str, seen: PlaceValues) -> st.SearchStrategy[str]:
    if re.fullmatch(r"[0-9]+", token):
        digits = len(token)
        return st.integers(0, 10**digits - 1).map(
            lambda number: str(number).zfill(digits) if digits > 1 else str(number)
        )
    if token[0].isalpha() and token.isascii() and token not in seen.common_words:
        letters = [st.sampled_from(_UPPER if letter.isupper() else _LOWER) for letter in token]
        return st.tuples(*letters).map("".join)
    return st.just(token)


def reservoir(corpus: ValueCorpus, places: list[Place], count: int, seed_value: int) -> dict[Place, list[Any]]:
    """Drawn values for the places that have a strategy."""
    drawn: dict[Place, list[Any]] = {}
    for index, place in enumerate(places):
        strategy = infer_strategy(corpus, place)
        if strategy is not None:
            drawn[place] = [value for value in draw_values(strategy, count, seed_value + index) if is_plain(value)]
    return drawn
