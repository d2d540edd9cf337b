"""Steps that are read when they are asked for: how many are, and that they are what the strict reader reads."""

import json
import random
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.core.token_prefix import TokenPrefix
from gametape.record import journal_steps
from gametape.record.journal import Journal
from gametape.record.journal_steps import JournalSteps
from gametape.record.trajectory_file import load_trajectory

from .test_growing import begun


def contexts(count: int, turns: int = 10) -> list[Step]:
    """A record of several contexts; each begins with a message."""
    steps: list[Step] = []
    ids: list[int] = []
    for number in range(1, count * (turns + 1) + 1):
        if number % (turns + 1) == 1:
            ids = [number]
            document: dict[str, object] = {"step_id": number, "source": "user", "message": "go on", "extra": {"a": 1}}
        else:
            prompt = [*ids, number, 1]
            metrics = {"prompt_token_ids": prompt, "completion_token_ids": [7, number], "logprobs": [-0.5, 0.0]}
            extra = {"gametape": {"loss_mask": [1, 1], "checkpoint": f"c{number}"}}
            document = {"step_id": number, "source": "agent", "message": "", "metrics": metrics, "extra": extra}
            ids = [*prompt, 7, number]
        steps.append(Step.model_validate(document))
    return steps


def written(path: Path, steps: list[Step]) -> Path:
    with Journal.create(path, begun()) as journal:
        for step in steps:
            journal.append(step)
    return path


def opened(path: Path) -> JournalSteps:
    steps = JournalSteps.open(path)
    assert steps is not None
    return steps


def test_opening_reads_no_step_and_the_end_needs_its_own_context_only(tmp_path: Path) -> None:
    steps = contexts(30)
    lazy = opened(written(tmp_path / "t.jsonl", steps))
    assert (len(lazy), lazy.parsed) == (330, 0)
    assert lazy[-1] == steps[-1]
    assert lazy.parsed == 10
    assert lazy.context() == [*steps[-1].metrics.prompt_token_ids, *steps[-1].metrics.completion_token_ids]
    assert lazy[320:] == steps[320:]
    assert lazy.parsed == 10
    assert lazy.brief(100).gametape_extra.checkpoint == "c101"
    assert lazy.parsed == 11


@pytest.mark.parametrize("kept", [1, 3, 1024])
def test_in_any_order_they_are_what_the_strict_reader_reads(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_steps, "MOST_KEPT", kept)
    path = written(tmp_path / "t.jsonl", contexts(4))
    steps = load_trajectory(path).steps
    lazy = opened(path)
    order = [*range(44), *reversed(range(44)), *random.Random(1).choices(range(44), k=60)]
    for index in order:
        assert lazy[index] == steps[index]
    assert [*lazy] == steps
    assert lazy.header == begun()


def test_reading_on_parses_each_step_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_steps, "MOST_KEPT", 2)
    lazy = opened(written(tmp_path / "t.jsonl", contexts(5)))
    assert len([*lazy]) == lazy.parsed == 55


def test_the_prompts_of_a_context_share_one_list(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", contexts(3))
    for steps in (opened(path)[:], load_trajectory(path).steps):
        prompts = [step.metrics.prompt_token_ids for step in steps if step.metrics]
        assert all(isinstance(prompt, TokenPrefix) for prompt in prompts)
        assert len({id(prompt._ids) for prompt in prompts}) == 3


def test_a_journal_is_continued_without_being_read(tmp_path: Path) -> None:
    steps = contexts(6)
    path = written(tmp_path / "t.jsonl", steps[:60])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"step_id": 61, "sou')
    with Journal.open_unread(path) as journal:
        assert journal.torn_bytes == 20
        assert isinstance(journal.steps, JournalSteps)
        assert journal.steps.parsed <= 10
        for step in steps[60:]:
            journal.append(step)
        assert journal.steps[-1] == steps[-1]
        assert len(journal.steps) == 66
    assert load_trajectory(path).steps == steps
    assert path.read_bytes().startswith(whole)
    with Journal.open_unread(path) as journal:
        journal.close()
    assert load_trajectory(tmp_path / "t.json").steps == steps


def test_a_damaged_line_is_told_when_it_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", contexts(3))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], b"{broken\n", *lines[7:]]))
    lazy = opened(path)
    assert lazy[32].step_id == 33
    for read in (lazy.brief, lazy.__getitem__):
        with pytest.raises(BadInput, match="line 7"):
            read(5)
    path.write_bytes(b"".join([*lines[:6], *lines[7:]]))
    with pytest.raises(BadInput, match="numbered from 1"):
        opened(path).brief(5)


def test_what_a_model_writes_into_a_call_is_not_taken_for_ids(tmp_path: Path) -> None:
    steps = contexts(2)
    call = {"tool_call_id": "c", "function_name": "f", "arguments": {"gametape_after": 1, "prompt_token_ids": [1]}}
    steps = [
        Step.model_validate(step.model_dump() | {"tool_calls": [call]}) if step.source == "agent" else step
        for step in steps
    ]
    lazy = opened(written(tmp_path / "t.jsonl", steps))
    assert (lazy[-1], lazy[5]) == (steps[-1], steps[5])


def test_journals_of_the_first_version_and_others_records(tmp_path: Path) -> None:
    steps = contexts(2)
    lines = [json.dumps({"gametape_journal": 1, "trajectory": begun().model_dump()})]
    lines += [json.dumps(step.model_dump()) for step in steps]
    (tmp_path / "t.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert [*opened(tmp_path / "t.jsonl")] == steps
    (tmp_path / "other.jsonl").write_text('{"text": "a"}\n')
    assert JournalSteps.open(tmp_path / "other.jsonl") is None
    assert opened(written(tmp_path / "n.jsonl", steps)).mentions("go on")
    assert not opened(tmp_path / "n.jsonl").mentions("go")
