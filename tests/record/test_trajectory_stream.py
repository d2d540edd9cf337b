"""Trajectories read step by step: what is a trajectory, what is not, and how much of a huge one is held."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.record.journal import Journal
from gametape.record.trajectory_file import load_trajectory, save_trajectory
from gametape.record.trajectory_stream import stream_trajectory

EXAMPLE = Path(__file__).parents[2] / "examples" / "trajectories" / "terminus.json"


def step(number: int, **fields: Any) -> dict[str, Any]:
    return {"step_id": number, "source": "agent", "message": f"turn {number}", **fields}


def document(steps: list[Any], **fields: Any) -> dict[str, Any]:
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": steps, **fields}


def test_what_comes_after_the_steps_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document([step(1), step(2)], extra={"outcome": "passed"}), indent=2))
    read = stream_trajectory(path)
    assert ([one["step_id"] for one in read.steps], read.header["extra"], read.running) == (
        [1, 2],
        {"outcome": "passed"},
        False,
    )
    assert "steps" not in read.header


def test_a_file_and_its_journal_say_the_same(tmp_path: Path) -> None:
    trajectory = load_trajectory(EXAMPLE)
    save_trajectory(tmp_path / "closed.json", trajectory)
    with Journal.create(tmp_path / "open.jsonl", trajectory.model_copy(update={"steps": []})) as journal:
        for one in trajectory.steps:
            journal.append(one)
    with (tmp_path / "open.jsonl").open("ab") as file:
        file.write(b'{"step_id": 6, "sour')
    closed, running = (stream_trajectory(tmp_path / name) for name in ("closed.json", "open.jsonl"))
    assert running.running
    assert running.steps == closed.steps


def test_of_a_huge_trajectory_only_the_kept_steps_are_held(tmp_path: Path) -> None:
    """Forty thousand token ids a step: the numbers are never held beside the text of the file."""
    ids = list(range(40_000))
    metrics = {"prompt_token_ids": ids, "completion_token_ids": ids[:7], "logprobs": [0.5] * 7}
    path = tmp_path / "huge.json"
    path.write_text(json.dumps(document([step(number, metrics=dict(metrics)) for number in range(1, 41)])))
    size = path.stat().st_size
    tracemalloc.start()
    read = stream_trajectory(path, lambda one: one["step_id"] == 33)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [one["step_id"] for one in read.steps] == [33]
    assert read.steps[0]["metrics"] == {"completion_tokens": 7}
    assert peak < 2.5 * size


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected a JSON object that holds a trajectory"),
        ("[1]", "expected a JSON object"),
        ("{}", "no list of steps"),
        ('{"schema_version": "ATIF-v1.7", "steps": 5}', "no list of steps"),
        ('{"schema_version": "ATIF-v1.7", "steps": [1]}', r"steps\[0\]: expected an object"),
        ('{"schema_version": "verdict-v1", "steps": []}', "schema_version is not that of an ATIF file"),
        ('{"schema_version": "ATIF-v1.7", "steps": [{"message": NaN}]}', "NaN is not a JSON number"),
        ('{"schema_version": "ATIF-v1.7", "steps": [{}', "not JSON: expected ,"),
        ('{"schema_version": "ATIF-v1.7", "steps": [{}]} {}', "more than one JSON document"),
        ('{"schema_version": "ATIF-v1.7", "steps": ' + "[" * 100_000, r"steps\[0\]|nesting"),
        ('{"a": 1' + "0" * 5000 + "}", "not JSON that can be read here"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1") + "{", "expected a JSON object"),
        ('{"gametape_journal": 2, "trajectory": {"ste', "the header of the journal is cut off"),
        ('{"gametape_journal": 2, "trajectory": 5}\n', "line 1: expected the header"),
        ('{"gametape_journal": 2, "trajectory": {"steps": []}}\n[]\n', "line 2: expected a step"),
        ('{"gametape_journal": 2, "trajectory": {"steps": []}}\n{"a"\n', "line 2: not JSON"),
    ],
)
def test_what_is_no_trajectory_is_said_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=says) as refused:
        stream_trajectory(path)
    assert "\n" not in str(refused.value)


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xff"}')
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "latin.json", tmp_path / "a\0b"):
        with pytest.raises(BadInput):
            stream_trajectory(path)
