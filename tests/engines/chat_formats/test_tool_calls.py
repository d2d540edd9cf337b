"""Calls as models write them, right and wrong."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.engines.chat_formats.tool_calls import MalformedCall, parse_call
from gametape.engines.conversation import Call

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=100)
@given(st.text(min_size=1), st.dictionaries(st.text(), values, max_size=3))
def test_every_call_that_json_can_say_is_read(name, arguments):
    assert parse_call(json.dumps({"name": name, "arguments": arguments})) == Call(name, arguments)


def test_arguments_may_be_left_out():
    assert parse_call('{"name": "finish"}') == Call("finish", {})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "not valid JSON"),
        ('{"name": "read", "arguments": {"path": "a.py"}', "line 1 column"),
        ("{'name': 'read'}", "not valid JSON"),
        ('[{"name": "read"}]', "it is a list"),
        ("3", "it is a number"),
        ('{"arguments": {}}', 'no "name"'),
        ('{"name": 7}', 'no "name"'),
        ('{"name": "read", "path": "a.py"}', '"path"'),
        ('{"name": "read", "arguments": "a.py"}', "is a string, not an object"),
        ('{"name": "read", "arguments": null}', "is null, not an object"),
        ('{"name": "read", "arguments": {"n": NaN}}', "NaN"),
        ('{"name": "read", "arguments": {"n": -Infinity}}', "Infinity"),
        ('{"name": "read", "arguments": {"n": 1e999}}', "too large"),
        ('{"name": "read", "arguments": {"n": ' + "9" * 5000 + "}}", "not valid JSON"),
        ('{"name": "read", "arguments": {"s": "\\ud800"}}', "surrogate"),
        ('{"name": "read", "arguments": {"\\udfff": 1}}', "surrogate"),
        ('{"name": "read", "arguments": {"s": ' + "[" * 40 + "]" * 40 + "}}", "nested too deeply"),
        ('{"name": "read", "arguments": {"s": ' + "[" * 200_000, "nested too deeply"),
    ],
)
def test_what_was_wrong_is_said_in_one_line(document, words):
    with pytest.raises(MalformedCall) as wrong:
        parse_call(document)
    assert words in str(wrong.value)
    assert "\n" not in str(wrong.value)
    assert len(str(wrong.value)) < 200
