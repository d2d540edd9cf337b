from typing import Any

import pytest

from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.judge import CALLS, FreshResult
from gametape.verify.fresh.readable_program import program_text
from gametape.verify.fresh.transcript_reader import read_programs
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.replayer import Replayer
from gametape.verify.replay.sandbox import ReplaySandboxes
from tests.verify.fresh.conftest import Judged

_TABLE = """
import difflib
TABLE = {table!r}
def parse_duration(text):
    if text in TABLE:
        return TABLE[text]
    {otherwise}
"""
_OTHERWISE = {
    "error": "raise ValueError(text)",
    "zero": "return 0",
    "nearest": "return TABLE[(difflib.get_close_matches(text, TABLE, 1, 0.0) or list(TABLE))[0]]",
    "shifted": "return TABLE[(difflib.get_close_matches(text, TABLE, 1, 0.0) or list(TABLE))[0]] + 1",
}


def sources(text: str) -> SourceTree:
    return SourceTree({"durations.py": text.encode()})


def test_the_reference_agrees_on_every_call(durations: Judged) -> None:
    result = durations.judge.judge(durations.reference)

    assert result.calls == CALLS
    assert result.agreed == result.calls
    assert result.share == 1.0
    assert result.differences == ()


def test_the_starting_tree_agrees_on_none(durations: Judged) -> None:
    result = durations.judge.judge(durations.loaded_task.start.under(["durations.py"]))

    assert result.agreed == 0
    difference = result.differences[0]
    assert difference.function == "durations:parse_duration"
    assert difference.input.startswith("durations:parse_duration('")
    assert difference.got == "raises NotImplementedError"


@pytest.mark.parametrize("otherwise", list(_OTHERWISE))
def test_a_table_of_recorded_answers_agrees_on_almost_none(durations: Judged, otherwise: str) -> None:
    table: dict[str, Any] = {}
    for program in read_programs([*durations.recording.transcripts.values()]):
        for step in program.steps:
            if step.function == "durations:parse_duration" and step.recorded[0] == words.RETURN:
                table[step.fields[1][0]] = step.recorded[2]
    assert len(table) > 8

    result = durations.judge.judge(sources(_TABLE.format(table=table, otherwise=_OTHERWISE[otherwise])))

    assert result.agreed <= result.calls * 0.1


@pytest.mark.parametrize("body", ["raise ValueError(text)", "return None", "return 0", "return text", "return {}"])
def test_a_trivial_program_agrees_on_almost_none(durations: Judged, body: str) -> None:
    result = durations.judge.judge(sources(f"def parse_duration(text):\n    {body}\n"))

    assert result.agreed <= result.calls * 0.2


def test_no_call_is_a_recorded_one_and_no_set_is_taken_twice(durations: Judged) -> None:
    recorded = {
        program_text(program, len(program.steps))
        for program in read_programs([*durations.recording.transcripts.values()])
    }
    sets = [
        frozenset(
            program_text(answered.program, 99)
            for call in durations.judge.draw()
            for answered in call.programs
            if not answered.recorded
        )
        for _ in range(6)
    ]

    assert not recorded & frozenset.union(*sets)
    assert len(set(sets)) == len(sets)


def test_a_seed_decides_what_is_drawn(durations: Judged) -> None:
    first, second = (
        {program_text(answered.program, 99) for call in durations.judge.draw(seed) for answered in call.programs}
        for seed in (1, 2)
    )

    assert first != second


def test_an_attempt_that_dies_or_talks_nonsense_has_no_answer(durations: Judged) -> None:
    for body in ("import os; os._exit(0)", "import os\n    for fd in range(3, 30):\n        os.write(fd, b'x' * 64)"):
        result = durations.judge.judge(sources(f"def parse_duration(text):\n    {body}\n"))

        assert (result.agreed, result.calls) == (0, CALLS)


def test_an_attempt_that_hangs_on_one_input_keeps_its_other_answers(durations: Judged) -> None:
    calls = durations.judge.draw(7)
    asked = [answered.program.steps[-1].fields[1][0] for call in calls for answered in call.programs]
    victim = next(text for text in asked if asked.count(text) == 1)
    text = durations.reference.text("durations.py").replace(
        "def parse_duration(",
        f"def parse_duration(text):\n    while text == {victim!r}:\n        time.sleep(1)\n    return old(text)\n\n\n"
        "def old(",
        1,
    )

    result = durations.judge.ask(sources(f"import time\n{text}"), calls)

    assert result.calls - result.agreed == 1
    assert result.differences[0].got == "no answer"


def test_an_attempt_may_raise_a_class_of_its_own(durations: Judged) -> None:
    text = durations.reference.text("durations.py").replace("raise ValueError(", "raise Bad(")
    assert "raise Bad(" in text

    result = durations.judge.judge(sources("class Bad(ValueError):\n    pass\n\n\n" + text))

    assert result.agreed == result.calls


def test_calls_in_the_process_of_a_replay_give_a_result_only_if_all_agree(durations: Judged) -> None:
    right = durations.reference.text("durations.py")
    wrong = right.replace("raise ValueError(", "return 7 or ValueError(")
    results = []
    with ReplaySandboxes() as sandboxes:
        for text in (right, wrong):
            with Replayer(durations.loaded_task, sources(text), sandboxes) as replayer:
                replayer.replay(durations.recording.scripts.values())
                results.append(durations.judge.ask_within(replayer, durations.judge.draw()))

    assert results == [FreshResult(CALLS, CALLS, ()), None]


_READS_AHEAD = """
import sys
def parse_duration(text):
    here = sys._getframe()
    while here is not None:
        worker = here.f_locals.get("self")
        if hasattr(worker, "_channel") and worker._channel._unread:
            return 7
        here = here.f_back
    return old(text)
"""


def test_no_call_waits_behind_another_one_so_that_fresh_calls_look_like_recorded_ones(durations: Judged) -> None:
    right = durations.reference.text("durations.py").replace("def parse_duration(", "def old(", 1)

    result = durations.judge.judge(sources(right + _READS_AHEAD))

    assert result.agreed == result.calls == CALLS
