import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gametape.core.errors import BadInput
from gametape.core.trajectory import Trajectory
from gametape.record.trajectory_file import load_trajectory, parse_bytes, save_trajectory

from ..core.documents import GOLDEN, every_place, replaced, small, text, trajectories

GOLDEN_BYTES = [path.read_bytes() for path in GOLDEN]


def refusal(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        load_trajectory(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_foreign_file_is_saved_as_it_was_read(path: Path, tmp_path: Path) -> None:
    save_trajectory(tmp_path / "copy.json", load_trajectory(path))
    assert text(json.loads((tmp_path / "copy.json").read_bytes())) == text(json.loads(path.read_bytes()))
    assert load_trajectory(tmp_path / "copy.json") == load_trajectory(path)


@settings(deadline=None, max_examples=40)
@given(document=trajectories())
def test_any_trajectory_is_saved_and_loaded_unchanged(
    document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("save") / "t.json"
    save_trajectory(path, Trajectory.model_validate(document))
    assert text(load_trajectory(path).model_dump()) == text(document)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(GOLDEN_BYTES), st.data())
def test_a_cut_or_changed_file_is_either_valid_or_refused(whole: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    to = data.draw(st.integers(at, min(at + 8, len(whole))))
    tail = b"" if data.draw(st.booleans()) else data.draw(st.binary(max_size=6)) + whole[to:]
    result = parse_bytes(whole[:at] + tail)
    assert (result.trajectory is None) == bool(result.problems)
    assert all(len(str(problem).splitlines()) == 1 for problem in result.problems)


@pytest.mark.parametrize("whole", GOLDEN_BYTES, ids=[path.stem for path in GOLDEN])
@pytest.mark.parametrize("value", [None, True, -1, 1.5, "", [], {}, [[]], {"type": 1}, 10**30], ids=repr)
def test_any_value_in_any_place_is_either_valid_or_refused(whole: bytes, value: Any) -> None:
    for places in every_place(json.loads(whole)):
        result = parse_bytes(json.dumps(replaced(json.loads(whole), places, value)).encode())
        assert (result.trajectory is None) == bool(result.problems)


def test_a_refusal_names_the_file_the_place_and_what_belongs_there(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    document = small()
    document["steps"][1]["metrics"]["logprobs"][1] = "x"
    path.write_text(json.dumps(document))
    assert refusal(path) == f"{path}: steps[1].metrics.logprobs[1]: expected a finite number that is at most 0"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b"\n", "expected JSON"),
        (b"[]", "a JSON object"),
        (b"{}", "schema_version: expected a value"),
        (json.dumps(small()).encode()[:-1], "line 1, column"),
        (
            json.dumps(small() | {"schema_version": "ATIF-v2.0"}).encode(),
            "schema_version: expected 'ATIF-v1.0'",
        ),
        (json.dumps(small() | {"steps": []}).encode(), "steps: expected at least one step"),
        (json.dumps(small()).encode("utf-16"), "expected UTF-8"),
        (b"[" * 10**6, "levels of nesting"),
        (b'{"a": ' * 10**5, "levels of nesting"),
        (json.dumps(small() | {"x\ny": float("nan")}).encode(), r'["x\ny"]: expected a finite number'),
        (json.dumps(small() | {"k" * 999: float("nan")}).encode(), "expected a finite number"),
        (b'{"gametape_journal": 3}\n', "gametape_journal: expected 2"),
        (b'{"gametape_journal": true, "trajectory": {"steps": []}}\n', "gametape_journal: expected 2"),
        (b'{"gametape_journal": 1}\n', "line 1, trajectory: expected"),
        (b'{"gametape_journal": 1, "trajec', "it is cut off"),
    ],
)
def test_content_that_is_no_trajectory_is_refused(content: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    message = refusal(path)
    assert message.startswith(f"{path}: ")
    assert expected in message
    assert len(message) < 500


def test_what_is_no_readable_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "missing")
    assert "a directory" in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path / "pipe")
    assert "not a path" in refusal(Path("nul\0byte"))
    assert r"two\nlines" in refusal(tmp_path / "two\nlines")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot be read" in refusal(tmp_path / "loop")


def test_deep_unknown_fields_survive(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(195):
        deep = [deep]
    document = small() | {"x": deep}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))
    save_trajectory(tmp_path / "again.json", load_trajectory(path))
    assert text(load_trajectory(tmp_path / "again.json").model_dump()) == text(document)
