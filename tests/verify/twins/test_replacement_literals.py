"""Changed literals are other values under every equality that is not absurd."""

import ast
import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gametape.verify.twins.replacement_literals import near_literal, replacement_literal, replacement_pattern

seeds = some.integers(0, 1000).map(random.Random)
scalars = some.one_of(
    some.integers(0),
    some.floats(0, 1e300),
    some.booleans(),
    some.text(),
    some.binary(),
    some.text("abc 019-+._", max_size=30),
)


@given(scalars, seeds)
def test_another_literal_of_the_same_type(value: object, rng: random.Random) -> None:
    new = replacement_literal(repr(value), value, rng)
    assert new is not None
    found = ast.literal_eval(new)
    assert type(found) is type(value)
    assert found != value
    if isinstance(found, str | bytes) and isinstance(value, str | bytes):
        assert found.lower().strip() != value.lower().strip()  # type: ignore[comparison-overlap]
        assert found.split() != value.split()  # type: ignore[comparison-overlap]


@given(some.one_of(some.integers(0), some.floats(0, 1e300)), seeds)
def test_numbers_move_beyond_any_tolerance(value: float, rng: random.Random) -> None:
    new = replacement_literal(repr(value), value, rng)
    assert new is not None
    assert abs(ast.literal_eval(new) - value) >= max(1.0, abs(value) * 0.5)
    assert ast.literal_eval(new) not in (True, False)


@given(some.lists(some.integers(0, 30), min_size=2, unique=True), seeds)
def test_nothing_that_stands_beside_is_taken(values: list[int], rng: random.Random) -> None:
    new = replacement_literal(str(values[0]), values[0], rng, frozenset(values[1:]))
    assert new is None or int(new) not in values


def test_ignored_parts_of_a_text_are_not_all_that_changes() -> None:
    for seed in range(50):
        new = ast.literal_eval(replacement_literal("'3.4.5+build.7'", "3.4.5+build.7", random.Random(seed)) or "")
        assert new.partition("+")[0] != "3.4.5"


def test_patterns_change_only_where_every_word_counts() -> None:
    rng = random.Random(1)
    assert replacement_pattern("'must be positive'", "must be positive", rng) not in (None, "'must be positive'")
    assert replacement_pattern("r'bad \\(value\\).*'", r"bad \(value\).*", rng) is not None
    for pattern in ("this|that", "x?", "(some)? value", "[abcde]+", "ab", r"\w+ value"):
        assert replacement_pattern(repr(pattern), pattern, rng) is None


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("5", {"4", "6"}),
        ("2", {"3"}),
        (r'"     2  x\n     1  y\n"', {r'"     1  x\n     1  y\n"'}),
        ('"no lines 3"', {None}),
        ("True", {None}),
    ],
)
def test_a_part_of_a_value_moves_by_one(text: str, near: set[str | None]) -> None:
    value = ast.literal_eval(text)
    assert {near_literal(text, value, random.Random(seed), frozenset()) for seed in range(30)} == near
