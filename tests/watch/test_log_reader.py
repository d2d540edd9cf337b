"""Anyone's logs become steps."""

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.record.journal import Journal
from gametape.record.trajectory_file import save_trajectory
from gametape.watch.log_reader import find_logs, read_log
from gametape.watch.monitor_set import MonitorSet

STEP: dict[str, Any] = {
    "step_id": 2,
    "source": "agent",
    "message": "Looking.",
    "timestamp": "2026-01-01T00:00:10+00:00",
    "tool_calls": [{"tool_call_id": "c", "function_name": "read", "arguments": {"path": "a.py"}}],
    "observation": {"results": [{"source_call_id": "c", "content": "x = 1"}]},
    "metrics": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_token_ids": [1], "completion_token_ids": [2, 3]},
}


def _trajectory(**more: Any) -> Trajectory:
    steps = [{"step_id": 1, "source": "user", "message": "Go."}, STEP]
    agent = {"name": "a", "version": "1", "model_name": "m"}
    return Trajectory.model_validate({"schema_version": "ATIF-v1.7", "agent": agent, "steps": steps, **more})


def test_a_trajectory_gives_the_agents_own_steps(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    save_trajectory(path, _trajectory())
    (placed,) = read_log(path)
    assert placed.step == 2
    assert placed.observed is not None
    assert (placed.observed.text, placed.observed.model, placed.observed.result) == ("Looking.", "m", "x = 1")
    assert placed.observed.actions[0].tool == "read"
    assert (placed.observed.tokens, placed.observed.time) == (7, 1767225610.0)


def test_a_running_journal_reads_like_the_finished_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    document = _trajectory().model_dump()
    with Journal.create(path, Trajectory.model_validate(document | {"steps": []})) as journal:
        for step in document["steps"]:
            journal.append(Step.model_validate(step))
    with path.open("ab") as file:
        file.write(b'{"step_id": 3, "torn')
    waits = iter([True, False])
    assert len(list(read_log(path))) == 1
    running = read_log(path, go_on=lambda: next(waits))
    assert next(running).observed == next(iter(read_finished(tmp_path))).observed


def read_finished(directory: Path) -> Any:
    save_trajectory(directory / "finished.json", _trajectory())
    return read_log(directory / "finished.json")


def test_a_foreign_trajectory_of_an_older_version(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "core" / "golden" / "foreign-v1.4.json"
    assert all(placed.observed for placed in read_log(golden))


def test_json_lines_of_three_makers(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = [
        {"text": "one", "time": 5, "tool_calls": [{"name": "ls", "arguments": {}}], "result": "ok", "model": "m"},
        {"role": "user", "content": "not the agent's"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "two"}],
            "tool_calls": [{"function": {"name": "f"}}],
        },
        {"text": None, "tool_calls": ["shell"]},
    ]
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n\n")
    placed = list(read_log(path))
    assert [(p.step, p.observed and p.observed.text, p.observed and p.observed.actions[0].tool) for p in placed] == [
        (1, "one", "ls"),
        (3, "two", "f"),
        (4, "", "shell"),
    ]


def test_hostile_records_are_steps_like_others(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    deep = '{"a":' * 900 + "1" + "}" * 900
    path.write_text(
        '{"text": "\\ud800", "cost_usd": NaN, "time": 1e999, "tokens": ' + "9" * 400 + "}\n"
        '{"text": ["a", {"text": "b"}, 3], "tool_calls": [{"name": "x", "arguments": ' + deep + "}]}\n"
        '{"text": true, "tool_calls": [null, 5], "result": [], "time": "yesterday", "role": null}\n'
    )
    watch = MonitorSet(baseline=0)
    first, *_ = [
        placed.observed for placed in read_log(path) if placed.observed and watch.update(placed.observed) == []
    ]
    assert first is not None
    assert (first.cost, first.time, first.tokens) == (None, None, None)
    assert watch.steps == 3


def test_lines_of_a_text_are_steps_blank_ones_too(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"first line\n\n  second \xff line"))
    placed = list(read_log(path))
    assert [p.step for p in placed] == [1, 2, 3]
    assert placed[1].observed is None
    assert placed[2].observed is not None
    assert (placed[2].observed.text, placed[2].observed.paragraph) == ("  second \ufffd line", 1)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.jsonl", b'{"text": "x"}\nnot json\n', "line 2"),
        ("b.jsonl", b'{"text": "x"}\n' + b"[" * 100_000 + b"\n", "line 2"),
        ("c.json", b'{"schema_version": "ATIF-v1.7"', "JSON"),
        ("d.gz", gzip.compress(b"text")[:-6], "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadInput, match=told):
        list(read_log(path))


def test_compressed_and_long_logs_of_a_directory_are_found(tmp_path: Path) -> None:
    talk = {"messages": [{"role": "assistant", "content": "I look at the parser. " * 5000}]}
    (tmp_path / "talk.jsonl").write_text(json.dumps(talk) + "\n" + json.dumps(talk) + "\n")
    (tmp_path / "whole.json").write_text(json.dumps(talk, indent=1))
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(b'{"text": "packed"}\n'))
    (tmp_path / "lines.log.xz").write_bytes(lzma.compress(b"a line\n"))
    (tmp_path / "broken.log.gz").write_bytes(b"\x1f\x8bno such thing")
    (tmp_path / "other.json").write_text('{"name": "a package"}')
    found = find_logs([tmp_path])
    assert [path.name for path in found.files] == ["lines.log.xz", "packed.jsonl.gz", "talk.jsonl", "whole.json"]
    assert found.skipped == 2
    assert all(list(read_log(path)) for path in found.files)


def test_a_directory_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a directory without"):
        find_logs([tmp_path])
    with pytest.raises(BadInput, match="No such file"):
        list(read_log(tmp_path / "absent"))
