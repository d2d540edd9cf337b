"""Logs of other makers: whatever shape they have, the same steps are read from them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.watch.log_reader import read_log
from gametape.watch.observed_step import ObservedStep

Record = dict[str, Any]


def _chat(text: str, path: str, result: str, at: int) -> list[Record]:
    function = {"name": "read", "arguments": json.dumps({"path": path})}
    call = {"id": f"c{at}", "type": "function", "function": function}
    return [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": text or None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{at}", "content": result},
    ]


def _blocks(text: str, path: str, result: str, at: int) -> list[Record]:
    said = [{"type": "thinking", "thinking": "hm"}, *([{"type": "text", "text": text}] if text else [])]
    call = {"type": "tool_use", "id": f"toolu_{at}", "name": "read", "input": {"path": path}}
    came = {"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": [{"type": "text", "text": result}]}
    return [{"role": "assistant", "content": [*said, call]}, {"role": "user", "content": [came]}]


def _wrapped(text: str, path: str, result: str, at: int) -> list[Record]:
    """A transcript that writes a line for each part of a message."""
    said, came = _blocks(text, path, result, at)
    whole = {"role": "assistant", "id": f"msg_{at}", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 2}}
    parts = [{"type": "assistant", "message": whole | {"content": [part]}} for part in said["content"]]
    return [{"type": "summary", "leafUuid": "u"}, *parts, {"type": "user", "message": came}]


def _events(text: str, path: str, result: str, at: int) -> list[Record]:
    call = {"event": "tool_call", "tool": "read", "args": {"path": path}, "ts": at, **({"text": text} if text else {})}
    return [call, {"event": "tool_result", "tool": "read", "output": result}]


def _items(text: str, path: str, result: str, at: int) -> list[Record]:
    said = {
        "type": "message",
        "id": f"msg_{at}",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }
    call = {"type": "function_call", "id": f"fc_{at}", "call_id": f"c{at}", "name": "read"}
    call["arguments"] = json.dumps({"path": path})
    came = {"type": "function_call_output", "call_id": f"c{at}", "output": result}
    return [{"type": "reasoning", "id": f"rs_{at}", "summary": []}, *([said] if text else []), call, came]


def _steps(path: Path) -> list[ObservedStep]:
    return [placed.observed for placed in read_log(path) if placed.observed is not None]


@pytest.mark.parametrize("shape", [_chat, _blocks, _wrapped, _events, _items])
def test_texts_calls_and_results_are_found(shape: Callable[..., list[Record]], tmp_path: Path) -> None:
    turns = [("" if at == 1 else f"Looking at {at}.", f"{at}.py", f"x = {at}") for at in range(4)]
    if shape is _events:
        turns = [("", path, result) for _, path, result in turns]
    records = [record for at, turn in enumerate(turns) for record in shape(*turn, at)]
    lines, document = tmp_path / "log.jsonl", tmp_path / "log.json"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records))
    document.write_text(json.dumps(records, indent=1))
    for path in (lines, document):
        seen = _steps(path)
        assert [step.text for step in seen] == [text for text, _, _ in turns]
        assert [step.actions[0].tool for step in seen] == ["read"] * 4
        assert [json.loads(step.actions[0].arguments)["path"] for step in seen] == [path for _, path, _ in turns]
        assert [step.result for step in seen] == [result for _, _, result in turns]
        assert {step.tokens for step in seen} == ({7} if shape is _wrapped else {None})


def test_a_conversation_that_grows_from_line_to_line_is_seen_once(tmp_path: Path) -> None:
    messages = [message for at in range(3) for message in _chat(f"Looking at {at}.", f"{at}.py", "ok", at)]
    path = tmp_path / "requests.jsonl"
    other = {"messages": [{"role": "assistant", "content": "Elsewhere."}]}
    grown = [{"messages": messages[:3]}, {"messages": messages[:6]}, {"messages": messages}, other]
    path.write_text("".join(json.dumps(record) + "\n" for record in grown))
    seen = _steps(path)
    assert [step.text for step in seen] == ["Looking at 0.", "Looking at 1.", "Looking at 2.", "Elsewhere."]
    assert len({step.session for step in seen}) == 2


def test_answers_of_an_api_are_unwrapped(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    answer = {"choices": [{"message": {"role": "assistant", "content": "Done."}}], "usage": {"total_tokens": 9}}
    path.write_text(json.dumps({"request": {"messages": []}, "response": answer | {"model": "m"}}) + "\n")
    (seen,) = _steps(path)
    assert (seen.text, seen.model, seen.tokens) == ("Done.", "m", 9)


def test_a_result_beside_its_call_belongs_to_it(tmp_path: Path) -> None:
    path = tmp_path / "beside.jsonl"
    call, came = {"type": "tool-call", "toolName": "read", "input": {}}, {"type": "tool-result", "output": "x = 1"}
    records = [{"role": "assistant", "content": [call]}, {"role": "assistant", "content": [call, came]}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    first, second = _steps(path)
    assert (first.result, second.result) == (None, "x = 1")
    assert second.actions[0].tool == "read"


def test_conversations_as_data_sets_keep_them(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    turns = [{"from": "human", "value": "Go."}, {"from": "gpt", "value": "Gone."}]
    kept = {"type": "ai", "data": {"content": "Well.", "tool_calls": [{"name": "read", "args": {"path": "a.py"}}]}}
    path.write_text(json.dumps([{"id": "1", "conversations": turns}, kept], indent=1))
    first, second = _steps(path)
    assert first.text == "Gone."
    assert (second.text, second.actions[0].arguments) == ("Well.", '{"path": "a.py"}')


def test_one_name_for_all_messages_does_not_make_them_one(tmp_path: Path) -> None:
    path = tmp_path / "named.jsonl"
    records = [
        {"id": "agent 1", "role": "assistant", "content": [{"type": "text", "text": f"Step {at}."}]} for at in range(9)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert len(_steps(path)) == 9


def test_json_in_which_nobody_speaks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"loss": 0.5}\n{"loss": 0.4}\n')
    with pytest.raises(BadInput, match="nothing that an agent said"):
        _steps(path)


def test_odd_records_are_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    odd: list[Any] = [{"type": ["x"]}, 5, None, {"functionCall": 3}, {"type": "tool_use"}, {"text": 7}]
    keys = ("message", "messages", "content", "choices", "tool_calls", "usage", "metrics", "observation", "role")
    records = [{"text": "hm", key: value} for key in keys for value in (odd, {"results": odd}, 5, "x", None)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert _steps(path)
