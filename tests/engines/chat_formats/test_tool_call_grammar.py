"""Grammars are whole: every rule that is used is there, and names of tools are quoted twice."""

import re

import pytest

from gametape.engines.chat_formats.tool_call_grammar import fenced_grammar, tagged_grammar

GRAMMARS = {
    "fenced": fenced_grammar(["read", 'odd"name']),
    "tagged": tagged_grammar(["read", 'odd"name'], "<tool_call>\n", "\n</tool_call>", "arguments"),
    "bare": tagged_grammar(["read", 'odd"name'], "", "", "parameters"),
}


@pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=GRAMMARS.keys())
def test_every_rule_is_defined_once_and_used(grammar):
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
    assert len(rules) == len(grammar.splitlines())
    literal = r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]'
    used = {word for body in rules.values() for word in re.findall(r"[a-z]+", re.sub(literal, "", body))}
    assert used | {"root"} == set(rules)


def test_names_are_those_of_the_tools():
    assert 'name ::= "\\"read\\"" | "\\"odd\\\\\\"name\\""\n' in GRAMMARS["fenced"]
