"""Journals of long conversations, and closed trajectories that are taken up again."""

import json
from pathlib import Path

import pytest

from gametape.core.step import Step
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.record.journal import Journal
from gametape.record.trajectory_file import load_trajectory, parse_file


def begun(**extra: object) -> Trajectory:
    return Trajectory.model_validate(
        {"schema_version": ATIF_VERSION, "agent": {"name": "a", "version": "0"}, "steps": [], "extra": extra}
    )


def turns(count: int, size: int = 50) -> list[Step]:
    ids: list[int] = []
    steps = []
    for number in range(1, count + 1):
        prompt = ids + [number] * size
        metrics = {"prompt_token_ids": prompt, "completion_token_ids": [7, 8], "logprobs": [-0.5, 0.0]}
        document = {"step_id": number, "source": "agent", "message": "", "metrics": metrics}
        steps.append(Step.model_validate(document))
        ids = [*prompt, 7, 8]
    return steps


def written(path: Path, steps: list[Step]) -> bytes:
    with Journal.create(path, begun()) as journal:
        for step in steps:
            journal.append(step)
    return path.read_bytes()


def test_a_journal_grows_with_what_is_new_and_opens_with_all_of_it(tmp_path: Path) -> None:
    steps = turns(200)
    data = written(tmp_path / "t.jsonl", steps)
    assert len(data) < 200 * 50 * 10
    assert load_trajectory(tmp_path / "t.jsonl").steps == steps
    assert load_trajectory(tmp_path / "t.jsonl").tokens_exact() is True


def test_it_is_continued_and_closed_whole(tmp_path: Path) -> None:
    steps = turns(6)
    written(tmp_path / "t.jsonl", steps[:3])
    with Journal.open(tmp_path / "t.jsonl") as journal:
        for step in steps[3:]:
            journal.append(step)
        journal.close()
    closed = json.loads((tmp_path / "t.json").read_bytes())
    assert closed["steps"][5]["metrics"]["prompt_token_ids"] == steps[5].metrics.prompt_token_ids


def test_a_prompt_that_does_not_continue_is_written_whole(tmp_path: Path) -> None:
    fresh = Step.model_validate(
        {
            "step_id": 4,
            "source": "agent",
            "message": "",
            "metrics": {"prompt_token_ids": [9], "completion_token_ids": [1]},
        }
    )
    steps = [*turns(3), fresh]
    written(tmp_path / "t.jsonl", steps)
    assert load_trajectory(tmp_path / "t.jsonl").steps == steps


def test_a_line_that_was_taken_out_is_seen(tmp_path: Path) -> None:
    lines = written(tmp_path / "t.jsonl", turns(4)).splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[:2] + lines[3:]))
    (problem,) = parse_file(tmp_path / "cut.jsonl").problems
    assert "continues 52 ids" in problem.expected


def test_a_journal_of_the_first_version_opens(tmp_path: Path) -> None:
    steps = turns(3)
    lines = [json.dumps({"gametape_journal": 1, "trajectory": begun().model_dump()})]
    lines += [json.dumps(step.model_dump()) for step in steps]
    (tmp_path / "t.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert load_trajectory(tmp_path / "t.jsonl").steps == steps


def closed(path: Path) -> list[Step]:
    steps = turns(3)
    with Journal.create(path, begun(task="t")) as journal:
        for step in steps:
            journal.append(step)
        journal.close(extra={"outcome": "limit", "reason": "3 turns"})
    return steps


def test_a_closed_trajectory_is_taken_up_without_its_ending(tmp_path: Path) -> None:
    steps = closed(tmp_path / "t.jsonl")
    with Journal.reopen(tmp_path / "t.jsonl") as journal:
        assert journal.trajectory.steps == steps
        assert journal.trajectory.extra == {"task": "t"}
        journal.append(turns(4)[3])
        assert not (tmp_path / "t.json").exists()
        journal.close(extra={"outcome": "passed"})
    assert load_trajectory(tmp_path / "t.json").outcome == "passed"
    assert len(load_trajectory(tmp_path / "t.json").steps) == 4


@pytest.mark.parametrize("left", [b"", b"half a li"])
def test_taking_up_that_was_cut_short_is_done_again(tmp_path: Path, left: bytes) -> None:
    steps = closed(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_bytes(left)
    with Journal.reopen(tmp_path / "t.jsonl") as journal:
        assert journal.trajectory.steps == steps
