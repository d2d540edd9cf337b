"""Tools in plain words, whatever their schema looks like."""

import pytest

from gametape.engines.chat_formats.fenced import describe_tool, example_call


@pytest.mark.parametrize(
    ("schema", "line", "sample"),
    [
        ({"type": "string"}, "x (string)", "..."),
        ({"type": "integer", "description": "how many"}, "x (integer): how many", 1),
        ({"enum": ["up", "down"]}, 'x (one of ["up", "down"])', "up"),
        ({"type": "string", "examples": ["b.py"]}, "x (string)", "b.py"),
        ({"type": ["string", "null"]}, "x (string or null)", "..."),
        (True, "x (any value)", "..."),
    ],
)
def test_an_argument_is_described_and_shown(schema, line, sample):
    tool = {"name": "t", "parameters": {"properties": {"x": schema}, "required": ["x"]}}
    assert describe_tool(tool) == f"- t\n    {line}"
    assert example_call(tool) == ("t", {"x": sample})


def test_a_tool_without_arguments():
    assert describe_tool({"name": "t", "description": "Stop."}) == "- t: Stop."
    assert example_call({"name": "t"}) == ("t", {})
