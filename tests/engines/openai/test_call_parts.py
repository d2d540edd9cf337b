"""Streamed calls as the various servers cut them."""

from typing import Any

import pytest

from gametape.engines.openai.call_parts import MAX_CALLS, ObjectScan, PartialCall, StreamedCallParts


def part(index: Any = None, id_: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    given = {"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}
    given["function"] = {key: value for key, value in given["function"].items() if value is not None}
    return {key: value for key, value in given.items() if value is not None}


STREAMS: dict[str, list[dict[str, Any]]] = {
    "by index, interleaved": [
        part(0, "a", "read", ""),
        part(1, "b", "list", ""),
        part(0, arguments='{"p":'),
        part(1, arguments="{"),
        part(0, arguments="1}"),
        part(1, arguments="}"),
    ],
    "backwards": [part(1, "b", "list", "{}"), part(0, "a", "read", '{"p":1}')],
    "index 0 for all, told apart by id": [
        part(0, "a", "read", '{"p":'),
        part(0, arguments="1}"),
        part(0, "b", "list", "{}"),
    ],
    "id in every part": [part(0, "a", "read", '{"p":'), part(0, "a", None, "1}"), part(1, "b", "list", "{}")],
    "name in every part": [part(0, "a", "read", '{"p":'), part(0, "a", "read", "1}"), part(1, "b", "list", "{}")],
    "no index": [part(None, "a", "read", '{"p":1}'), part(None, "b", "list", "{}")],
    "arguments as objects": [part(0, "a", "read", {"p": 1}), part(1, "b", "list", {})],
    "null where nothing is": [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": None}},
        {"index": 0, "id": None, "function": {"name": None, "arguments": '{"p":1}'}},
        {"index": 1, "id": "b", "function": {"name": "list", "arguments": None}},
    ],
}
WITHOUT_IDS: dict[str, list[dict[str, Any]]] = {
    "no id": [part(0, None, "read", '{"p":1}'), part(1, None, "list", "{}")],
    "neither id nor index": [part(name="read", arguments='{"p":1}'), part(name="list", arguments="{}")],
    "index 0 for all, no id": [part(0, None, "read", '{"p":'), part(0, arguments="1}"), part(0, None, "list", "{}")],
    "the same tool twice, no id": [part(0, None, "read", '{"p":1}'), part(0, None, "read", '{"p":2}')],
}


@pytest.mark.parametrize("case", STREAMS)
def test_two_calls(case: str) -> None:
    calls = StreamedCallParts()
    for given in STREAMS[case]:
        calls.add(given)
    first, second = calls.in_order()
    assert (first.id, first.name, first.arguments.replace(" ", "")) == ("a", "read", '{"p":1}')
    assert (second.id, second.name, second.arguments or "{}") == ("b", "list", "{}")


@pytest.mark.parametrize("case", WITHOUT_IDS)
def test_two_calls_without_ids(case: str) -> None:
    calls = StreamedCallParts()
    for given in WITHOUT_IDS[case]:
        calls.add(given)
    first, second = calls.in_order()
    assert (first.name, first.arguments) == ("read", '{"p":1}')
    assert (second.id, second.name in {"list", "read"}) == ("", True)


@pytest.mark.parametrize("index", ["0", 1.5, True, [0]])
def test_what_is_no_index(index: Any) -> None:
    with pytest.raises(TypeError):
        StreamedCallParts().add(part(index, "a", "read", "{}"))


def test_there_is_an_end_to_calls() -> None:
    calls = StreamedCallParts()
    for index in range(MAX_CALLS):
        calls.add(part(index, f"id{index}", "read", "{}"))
    with pytest.raises(ValueError, match=str(MAX_CALLS)):
        calls.add(part(MAX_CALLS, "one-more", "read", "{}"))


class CountedScan(ObjectScan):
    """Counts the characters that are looked at."""

    characters = 0

    def _look_at(self, piece: str) -> None:
        CountedScan.characters += len(piece)
        super()._look_at(piece)


def test_every_character_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parses: list[Any] = []
    monkeypatch.setattr("json.loads", lambda *given, **_: parses.append(given))
    calls = StreamedCallParts([PartialCall(0, "", "read", scan=CountedScan())])
    given = ['{"p": "', *["}y\\"] * 3000, '\\"']
    for piece in given:
        calls.add(part(0, None, "read", piece))
    assert [call.arguments for call in calls.parts] == ["".join(given)]
    assert CountedScan.characters <= len("".join(given))
    assert parses == []


@pytest.mark.parametrize(
    ("pieces", "over"),
    [
        (['{"a": "}"', "}"], True),
        (['{"a": {', "}"], False),
        (['{"a": "\\', '"}'], False),
        (['{"a": "\\', '"', '"}'], True),
        (['{"a": "\\', "\\", '"}'], True),
        (['"x"'], False),
        ([""], False),
        (["{", "} "], True),
    ],
)
def test_where_an_object_is_over(pieces: list[str], over: bool) -> None:
    whole, by_piece = ObjectScan(), ObjectScan()
    for end in range(1, len(pieces)):
        by_piece.is_over(pieces[:end])
    assert by_piece.is_over(pieces) == whole.is_over(pieces) == over
    assert ObjectScan().is_over(list("".join(pieces))) == over


def test_a_name_has_an_end() -> None:
    calls = StreamedCallParts()
    calls.add(part(0, "a", "x" * 600))
    with pytest.raises(ValueError, match="1201"):
        calls.add(part(0, "a", "y" * 601))
