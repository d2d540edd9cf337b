"""The index finds every step where it lies, whatever the texts hold and however the file grows."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.record import trajectory_index
from gametape.record.journal_format import header_line, step_line, subagent_line
from gametape.record.trajectory_index import index_trajectory

TEXTS = ['"steps": [{', "\\", '\\"', "]}]}", "é\u2028\n", "a" * 200, ""]


def document(steps: list[Any], **fields: Any) -> dict[str, Any]:
    return {"schema_version": "ATIF-v1.7", "notes": "steps", "steps": steps, "extra": {"steps": [{"x": [1]}]}} | fields


def nested_steps(count: int) -> list[dict[str, Any]]:
    return [
        {"step_id": n, "message": TEXTS[n % len(TEXTS)] * n, "extra": {"steps": [{"a": [[]]}]}}
        for n in range(1, count + 1)
    ]


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 1])
def test_every_step_is_found_whatever_the_texts_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, indent: int | None
) -> None:
    monkeypatch.setattr(trajectory_index, "_BLOCK", block)
    told = document(nested_steps(12))
    path = tmp_path / "t.json"
    path.write_text(json.dumps(told, indent=indent, ensure_ascii=False))
    index = index_trajectory(path)
    assert [*index.steps(0, 99)] == told["steps"]
    assert [*index.steps(3, 5)] == told["steps"][3:5]
    assert index.header == told | {"steps": []}
    assert index_trajectory(path, index) is index


def test_a_journal_is_continued_where_it_was_left(tmp_path: Path) -> None:
    path, steps = tmp_path / "t.jsonl", nested_steps(5)
    path.write_bytes(header_line({"schema_version": "ATIF-v1.7"}) + step_line(steps[0], 0) + step_line(steps[1], 1)[:9])
    index = index_trajectory(path)
    assert (len(index), index.running) == (1, True)
    with path.open("ab") as file:
        file.write(step_line(steps[1], 1)[9:] + subagent_line({"trajectory_id": "sub"}, 0) + step_line(steps[2], 2))
    grown = index_trajectory(path, index)
    assert grown is index
    assert [*grown.steps(0, 9)] == steps[:3]
    assert [sub["trajectory_id"] for sub in grown.header["subagent_trajectories"]] == ["sub"]


def test_a_journal_that_was_cut_back_is_read_anew(tmp_path: Path) -> None:
    path, steps = tmp_path / "t.jsonl", nested_steps(3)
    path.write_bytes(header_line({"a": 1}) + b"".join(step_line(step, n) for n, step in enumerate(steps)))
    index = index_trajectory(path)
    path.write_bytes(header_line({"a": 1}) + step_line(steps[0], 0))
    assert [*index_trajectory(path, index).steps(0, 9)] == steps[:1]


def test_a_file_that_was_replaced_is_not_read_by_old_offsets(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document(nested_steps(3))))
    index = index_trajectory(path)
    (tmp_path / "new").write_text(json.dumps(document([{"step_id": 1}])))
    (tmp_path / "new").replace(path)
    with pytest.raises(BadInput, match="written anew"):
        [*index.steps(0, 3)]
    assert [*index_trajectory(path, index).steps(0, 9)] == [{"step_id": 1}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a trajectory"),
        ("{}", "not a trajectory"),
        ('{"schema_version": "ATIF-v1.7", "steps": [{"step_id": 1}', "not a whole JSON object"),
        ('{"steps": []}', "schema_version"),
        ('{"schema_version": "ATIF-v1.7", "steps": [], x}', "not JSON"),
        ('{"gametape_journal": 2, "traj', "cut off"),
        ('{"gametape_journal": 2, "trajectory": 3}\n', "header of a journal"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=says) as refusal:
        index_trajectory(path)
    assert "\n" not in str(refusal.value)


def test_a_step_that_is_none_is_said_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"schema_version": "ATIF-v1.7", "steps": [[1], {"a" 1}]}')
    index = index_trajectory(path)
    for number in range(2):
        with pytest.raises(BadInput, match=f"step {number + 1}"):
            [*index.steps(number, number + 1)]


def test_links_and_pipes_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(document([])))
    (tmp_path / "link.json").symlink_to(tmp_path / "t.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("link.json", "pipe.json", "nothing.json", "a\0b"):
        with pytest.raises(BadInput):
            index_trajectory(tmp_path / name)


def test_a_document_with_holes_is_refused_at_the_first(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"schema_version": "ATIF-v1.7", "steps": [{"message": "')
    os.truncate(path, 1 << 30)
    with pytest.raises(BadInput, match="as a file with holes does"):
        index_trajectory(path)
    os.truncate(path, 1 << 40)
    with pytest.raises(BadInput, match="too large to be shown"):
        index_trajectory(path)


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_step_that_is_too_large_and_too_many_steps_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, steps = tmp_path / name, [{"step_id": 1}, {"step_id": 2, "message": "x" * 900}]
    if name == "t.json":
        path.write_text(json.dumps(document(steps)))
    else:
        lines = [step_line(step, at) for at, step in enumerate(steps)]
        path.write_bytes(header_line({"schema_version": "ATIF-v1.7"}) + b"".join(lines))
    assert len([*index_trajectory(path).steps(0, 2)]) == 2
    monkeypatch.setattr(trajectory_index, "_LONGEST_STEP", 800)
    with pytest.raises(BadInput, match="too large to be shown"):
        [*index_trajectory(path).steps(0, 2)]
    monkeypatch.setattr(trajectory_index, "_MOST_STEPS", 1)
    monkeypatch.setattr(trajectory_index, "_LONGEST_STEP", 8_000)
    with pytest.raises(BadInput, match="too many to be shown"):
        index_trajectory(path)
