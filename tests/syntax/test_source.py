"""Decoding, parsing within bounds, and edits by offset."""

import ast

import pytest

from gametape.syntax.source import decode_source, parse, parse_expression, parse_or_none
from gametape.syntax.source_text import SourceEdit, SourceText, apply_edits


@pytest.mark.parametrize("source", ["def f(:", "x = '\0'", "(" * 5000, b"# coding: no-such\n", b"\xff\xfe"])
def test_whatever_cannot_be_parsed_is_a_syntax_error(source: str | bytes) -> None:
    with pytest.raises(SyntaxError):
        parse(source)
    assert parse_or_none(source) is None


def test_bounds_are_for_untrusted_authors_only() -> None:
    deep = "x = " + "-" * 400 + "1\n"
    assert parse(deep)
    assert parse_or_none(deep, bounded=True) is None
    assert parse_or_none("#" * (1 << 21), bounded=True) is None


def test_a_long_chain_of_elif_is_not_deep() -> None:
    chain = "if x == 0: pass\n" + "".join(f"elif x == {number}: pass\n" for number in range(1, 900))
    assert len(parse(chain, bounded=True).body) == 900


def test_a_file_is_decoded_as_it_declares() -> None:
    assert decode_source("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1")).endswith("x = 'é'\n")
    assert decode_source(b"\xef\xbb\xbfx = 1\n") == "x = 1\n"
    assert decode_source(b"# coding: nonsense\nx = '\xff'\n").endswith("x = '\ufffd'\n")


def test_an_expression_is_exactly_one() -> None:
    assert ast.unparse(parse_expression("a +\nb")) == "a + b"
    with pytest.raises(SyntaxError):
        parse_expression("1); (2")


def test_edits_count_characters_and_must_not_overlap() -> None:
    source = "é = 'ü'; x = 1\n"
    text, module = SourceText(source), parse(source)
    second = module.body[1]
    assert isinstance(second, ast.Assign)
    assert text.text_of(second.value) == "1"
    edits = [text.replace(second.value, "22"), text.insert_before(module.body[0], "# ")]
    assert apply_edits(source, edits) == "# é = 'ü'; x = 22\n"
    with pytest.raises(ValueError, match="overlap"):
        apply_edits(source, [SourceEdit(0, 3, ""), SourceEdit(2, 4, "")])
