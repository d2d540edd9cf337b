"""What a record comes to: the same by whatever way it is found, and without reading what was counted before."""

from pathlib import Path

import pytest

from gametape.agent.progress_log import MOST_CHARACTERS, LatestEntries
from gametape.agent.record_digest import DigestFile, RecordDigest
from gametape.agent.recorder import message_step
from gametape.core.step import Step
from gametape.record.journal import Journal
from gametape.record.journal_steps import JournalSteps

from ..record.test_growing import begun


def turn(number: int, **extra: object) -> Step:
    call = {"tool_call_id": "c", "function_name": "shell", "arguments": {"command": f"make {number}"}}
    document = {
        "step_id": number,
        "source": "agent",
        "message": f"Turn {number}.",
        "timestamp": f"2026-11-19T10:00:{number % 60:02}+00:00",
        "tool_calls": [call] if number % 5 else None,
        "observation": {"results": [{"source_call_id": "c", "content": "done"}]} if number % 5 else None,
        "metrics": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_token_ids": [1], "completion_token_ids": [2]},
        "extra": {"gametape": {"checkpoint": f"c{number}", "seconds": float(number), **extra}},
    }
    return Step.model_validate({key: value for key, value in document.items() if value is not None})


def record(count: int) -> list[Step]:
    """A system prompt, then messages, turns, and now and then a context that begins anew."""
    steps = [message_step(1, "system", "You are an agent.", checkpoint="c1")]
    while len(steps) < count:
        number = len(steps) + 1
        if number % 10 == 2:
            steps.append(message_step(number, "user", f"Message {number}", key=f"k{number}"))
        elif number % 23 == 0:
            steps.append(message_step(number, "user", "Go on.", compacted=True, events=[{"kind": "compaction"}]))
        else:
            steps.append(turn(number, summary=True) if number % 22 == 0 else turn(number))
    return steps


def stored(tmp_path: Path, count: int, digest_of: int) -> tuple[DigestFile, Path]:
    path, steps = tmp_path / "t.jsonl", record(count)
    with Journal.create(path, begun()) as journal:
        for step in steps:
            journal.append(step)
    file = DigestFile(tmp_path / "t.digest")
    file.save(RecordDigest.of(steps[:digest_of]), opened(path))
    return file, path


def opened(path: Path) -> JournalSteps:
    steps = JournalSteps.open(path)
    assert steps is not None
    return steps


def plain(digest: RecordDigest) -> RecordDigest:
    """Without the moment at which this process took over."""
    digest.usage.began = 0.0
    if digest.message:
        digest.message.before.began = 0.0
    return digest


def test_of_a_stored_digest_only_what_came_after_it_is_read(tmp_path: Path) -> None:
    file, path = stored(tmp_path, 300, digest_of=290)
    steps = opened(path)
    assert plain(file.load(steps)) == plain(RecordDigest.of(record(300)))
    assert steps.parsed == 10


def test_it_counts_what_the_steps_say() -> None:
    digest = RecordDigest.of(record(70))
    assert (digest.steps, digest.messages, digest.usage.turns) == (70, 7, 57)
    assert digest.message is not None
    assert (digest.message.key, digest.message.index, digest.message.before.turns) == ("k62", 61, 51)
    assert (digest.context, digest.context_turns) == (68, 56)
    assert digest.progress.asked.entries[0] == "Message 12"
    assert not digest.rewound
    digest.add(message_step(71, "system", "Went back.", rolled_back_to=60, compacted=True))
    assert digest.rewound


@pytest.mark.parametrize("damage", ["lost", "garbage", "old", "of another", "cut"])
def test_one_that_does_not_fit_is_made_anew(damage: str, tmp_path: Path) -> None:
    file, path = stored(tmp_path, 60, digest_of=50)
    lines = path.read_bytes().splitlines(keepends=True)
    match damage:
        case "lost":
            file.path.unlink()
        case "garbage":
            file.path.write_bytes(b"\xff{")
        case "old":
            file.path.write_bytes(file.path.read_bytes().replace(b'"version": 1', b'"version": 0'))
        case "of another":
            path.write_bytes(b"".join([*lines[:50], lines[50].replace(b"Turn", b"Tarn"), *lines[51:]]))
        case "cut":
            path.write_bytes(b"".join(lines[:40]))
    steps = opened(path)
    assert plain(file.load(steps)) == plain(RecordDigest.of([*opened(path)]))
    assert steps.parsed == len(steps)


def test_of_long_lists_the_latest_are_kept_and_all_are_counted() -> None:
    entries = LatestEntries()
    for number in range(5_000):
        entries.add(f"{number:4} " + "x" * 95)
    assert sum(map(len, entries.entries)) <= MOST_CHARACTERS + 100
    text = entries.text(1_000)
    assert text.startswith("(and 4990 earlier)\n4990 ")
    assert len(text.splitlines()) == 11
