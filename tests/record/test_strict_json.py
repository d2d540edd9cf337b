import json
from typing import Any

import pytest
from hypothesis import given

from gametape.record.strict_json import MAX_NESTING, InvalidJson, decode, encode

from ..core.documents import JSON, text


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@given(JSON)
def test_what_is_written_is_one_line_and_reads_back_the_same(document: Any) -> None:
    data = encode(document)
    assert data.count(b"\n") == 1
    assert data.endswith(b"\n")
    assert text(decode(data)) == text(document)


@pytest.mark.parametrize(
    ("data", "path", "expected"),
    [
        (b"", "line 1, column 1", "JSON"),
        (b'{\n"a": }', "line 2, column 6", "JSON"),
        (b'{"a": 1', "line 1, column 8", "JSON"),
        (b"{} {}", "line 1, column 4", "JSON"),
        (b'\xef\xbb\xbf{"a": 1}', "line 1", "byte order mark"),
        (b'{"a":\n"\xff"}', "line 2", "UTF-8 (byte 7"),
        ('{"a": 1}'.encode("utf-16"), "line 1", "UTF-8"),
        (b'{"a": {"b": [0, NaN]}}', "a.b[1]", "a finite number"),
        (b'{"a": -Infinity}', "a", "a finite number"),
        (b'{"a": 1e999}', "a", "a finite number"),
        (b'{"a": "\\ud800"}', "a", "surrogate"),
        (b'{"a": {"\\udc00": 1}}', "a", "keys"),
        (b'{"a": 1, "b": 2, "a": 3}', "a", "each key once"),
        (b'{"a": ' + b"9" * 5000 + b"}", "", "4300 digits"),
        (nested(10**6), "", f"at most {MAX_NESTING} levels"),
        (nested(900), "[0][0][0]", f"at most {MAX_NESTING} levels"),
    ],
    ids=range(16),
)
def test_what_is_not_plain_is_refused_by_its_place(data: bytes, path: str, expected: str) -> None:
    with pytest.raises(InvalidJson) as caught:
        decode(data)
    assert caught.value.problem.path == path
    assert expected in caught.value.problem.expected


def test_the_limit_on_nesting_counts_from_the_place_in_the_larger_document() -> None:
    assert decode(nested(MAX_NESTING)) is not None
    with pytest.raises(InvalidJson):
        decode(nested(MAX_NESTING), location=("steps", 0))
    with pytest.raises(InvalidJson):
        encode(json.loads(nested(MAX_NESTING)), location=("steps", 0))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {1}, b"bytes", {1: 2}, 10**5000], ids=range(7))
def test_nothing_is_written_that_could_not_be_read(value: Any) -> None:
    with pytest.raises(InvalidJson):
        encode({"a": [value]})
