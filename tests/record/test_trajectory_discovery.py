"""Which files of a directory are trajectories, and which are not looked at at all."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput
from gametape.record.trajectory_discovery import SNIFFED_BYTES, find_trajectories, is_trajectory_file

STEP: dict[str, Any] = {"step_id": 1, "source": "agent", "message": "x"}


def closed(path: Path, **more: Any) -> Path:
    document = {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": [STEP], **more}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def journal(path: Path) -> Path:
    head = {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": []}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{json.dumps({'gametape_journal': 2, 'trajectory': head})}\n{json.dumps(STEP)}\n")
    return path


def other(path: Path, text: str = "{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_goal_a_thread_and_an_attempt_have_one_record_each(tmp_path: Path) -> None:
    goal, thread, attempt = tmp_path / "goals/goal-1", tmp_path / "threads/thread-1", tmp_path / "runs/first"
    expected = [
        closed(goal / "trajectory.json"),
        journal(thread / "trajectory.jsonl"),
        closed(attempt / "trajectory.json"),
    ]
    journal(attempt / "trajectory.jsonl")
    for directory, names in (
        (goal, ("goal.json", "baseline.json", "result.json")),
        (thread, ("thread.json", "reply.json")),
    ):
        for name in names:
            other(directory / name)
    search = find_trajectories([tmp_path])
    assert search.files == sorted(expected)
    assert search.skipped == 5
    assert [file for file, _ in search.load()] == sorted(expected)


@pytest.mark.parametrize(
    "place",
    [
        "runs/first/workspace",
        "runs/first/workspace/deep/trajectories",
        "runs/first/.workspace.new",
        "runs/first/checkpoints/objects",
        "runs/first/notes",
        "goals/goal-1/start",
        "goals/goal-1/repo.git",
        "vault",
        "environments/e/lib/python3.11/site-packages/p",
        "tasks/mined/environment/tests",
        "begun/workspace",
    ],
)
def test_what_an_agent_or_a_repository_wrote_is_not_counted(tmp_path: Path, place: str) -> None:
    honest = closed(tmp_path / "runs/first/trajectory.json")
    other(tmp_path / "goals/goal-1/goal.json")
    other(tmp_path / "tasks/mined/task.toml")
    closed(tmp_path / place / "trajectory.json", extra={"outcome": "passed"})
    journal(tmp_path / place / "other.jsonl")
    assert find_trajectories([tmp_path]).files == [honest]


def test_the_files_of_runs_and_evaluations_are_skipped(tmp_path: Path) -> None:
    rollout = closed(tmp_path / "trajectories/rollout-1.json")
    for name in ("metrics.jsonl", "attempts.jsonl", "targets.jsonl", "report.json", "start/config.json", "mine.jsonl"):
        other(tmp_path / name, '{"kind": "update", "step": 1}\n')
    search = find_trajectories([tmp_path])
    assert (search.files, search.skipped) == ([rollout], 6)


def test_a_version_after_very_long_steps_is_found_without_parsing(tmp_path: Path) -> None:
    steps = [STEP | {"message": "x" * (3 * SNIFFED_BYTES)}]
    path = other(tmp_path / "theirs.json", json.dumps({"steps": steps, "schema_version": "ATIF-v1.5"}))
    assert is_trajectory_file(path)
    assert not is_trajectory_file(other(tmp_path / "huge.json", json.dumps({"vocabulary": "x" * (3 * SNIFFED_BYTES)})))


def test_each_trajectory_counts_once(tmp_path: Path) -> None:
    path = closed(tmp_path / "a/t.json")
    (tmp_path / "a/again.json").symlink_to(path)
    assert len(find_trajectories([tmp_path, path, tmp_path / "a"]).files) == 1


def test_loops_pipes_and_what_cannot_be_read_are_survived(tmp_path: Path) -> None:
    path = closed(tmp_path / "t.json")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self.json").symlink_to(tmp_path / "self.json")
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "directory.json").mkdir()
    search = find_trajectories([tmp_path])
    assert (search.files, search.skipped) == ([path], 0)


def test_a_damaged_record_among_others_is_named(tmp_path: Path) -> None:
    path = closed(tmp_path / "good.json")
    other(tmp_path / "torn.json", path.read_text()[:-5])
    search = find_trajectories([tmp_path])
    assert [file for file, _ in search.load()] == [path]
    (said,) = search.damaged
    assert "torn.json" in said
    path.unlink()
    with pytest.raises(BadInput, match="torn"):
        list(find_trajectories([tmp_path]).load())


def test_a_named_file_has_to_be_a_trajectory_and_a_directory_has_to_have_one(tmp_path: Path) -> None:
    plain = other(tmp_path / "plain.json")
    with pytest.raises(BadInput, match="no trajectory in it"):
        find_trajectories([tmp_path])
    closed(tmp_path / "good.json")
    with pytest.raises(BadInput, match="plain"):
        list(find_trajectories([tmp_path, plain]).load())
