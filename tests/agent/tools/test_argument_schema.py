import pytest
from hypothesis import given
from hypothesis import strategies as st

from gametape.agent.tools.argument_schema import argument_problem, parameters_schema

SCHEMA = parameters_schema(
    ("path",),
    path={"type": "string", "minLength": 1, "maxLength": 10},
    line={"type": "integer", "minimum": 1},
    share={"type": "number", "minimum": 0, "maximum": 1},
    all={"type": "boolean"},
    what={"type": "string", "enum": ["log", "diff"]},
    paths={"type": "array", "items": {"type": "string"}, "maxItems": 2},
)
EXPECTED = (
    "expected: path (string), line (integer, optional), share (number, optional), all (boolean, optional), "
    "what (log | diff, optional), paths (array of string, optional)"
)


def test_good_arguments_are_let_through() -> None:
    good = {"path": "a", "line": 1, "share": 1, "all": True, "what": "log", "paths": ["x", "y"]}
    assert argument_problem(SCHEMA, good) is None


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "argument 'path' is missing"),
        ({"path": "a", "file": 1}, "unknown argument 'file'"),
        ({"path": 1}, "argument 'path' must be a string, not 1"),
        ({"path": ""}, "argument 'path' must not be empty"),
        ({"path": "x" * 11}, "argument 'path' must have at most 10 characters, not 11"),
        ({"path": "\ud800"}, "argument 'path' holds half a character (an unpaired surrogate)"),
        ({"path": "a", "line": "3"}, "argument 'line' must be an integer, not '3'"),
        ({"path": "a", "line": True}, "argument 'line' must be an integer, not True"),
        ({"path": "a", "line": 1.5}, "argument 'line' must be an integer, not 1.5"),
        ({"path": "a", "line": 0}, "argument 'line' must be at least 1"),
        ({"path": "a", "share": float("nan")}, "argument 'share' must be a number, not nan"),
        ({"path": "a", "share": 2}, "argument 'share' must be at most 1"),
        ({"path": "a", "all": "yes"}, "argument 'all' must be a boolean, not 'yes'"),
        ({"path": "a", "what": "blame"}, "argument 'what' must be one of log, diff, not 'blame'"),
        ({"path": "a", "paths": ["a", 1]}, "argument 'paths' must be a string, not 1"),
        ({"path": "a", "paths": ["a"] * 3}, "argument 'paths' must have at most 2 entries"),
        ({"path": None}, "argument 'path' must be a string, not None"),
        ([1], "the arguments must be an object"),
    ],
)
def test_a_fault_is_one_line_that_says_what_is_expected(arguments: object, fault: str) -> None:
    assert argument_problem(SCHEMA, arguments) == f"{fault}; {EXPECTED}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(SCHEMA["properties"], JSON)))
def test_nothing_raises_and_every_answer_is_one_short_line(arguments: object) -> None:
    found = argument_problem(SCHEMA, arguments)
    assert found is None or ("\n" not in found and len(found) < 500)


def test_a_hostile_schema_fetches_nothing_and_runs_no_pattern() -> None:
    """`$ref` to a URL, a pattern that takes for ever or does not compile, and a type that nobody knows are ignored."""
    for hostile in (
        {"$ref": "http://127.0.0.1:9/schema"},
        {"type": "string", "pattern": "("},
        {"type": "string", "pattern": "(a+)+$"},
        {"type": "no such type"},
    ):
        assert argument_problem({"properties": {"x": hostile}}, {"x": "a" * 40 + "!"}) is None


def test_surrogates_are_refused_whatever_the_schema_says() -> None:
    for value in ("\ud800", ["\ud800"], {"a": ["\ud800"]}, {"\ud800": 1}):
        assert "half a character" in (argument_problem({"properties": {"x": {}}}, {"x": value}) or "")
