"""Programs in real processes, some of which no process survives."""

from dataclasses import replace

from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.conversation import LOST
from gametape.verify.fresh.player import ProgramPlayer
from gametape.verify.fresh.transcript_reader import greeting, read_programs
from gametape.verify.replay.sandbox import ReplaySandboxes
from tests.verify.fresh.conftest import Judged

_DIES = b"""
import os
def parse_duration(text):
    if text == "fatal":
        os._exit(3)
    return len(text)
"""


def test_a_program_that_ends_its_process_costs_the_others_nothing(durations: Judged) -> None:
    transcripts = [*durations.recording.transcripts.values()]
    (program, *_) = [one for one in read_programs(transcripts) if one.steps[1].function == "durations:parse_duration"]
    look_up, call = program.steps
    texts = [*"abcdefgh", "fatal", *"ijkl", "fatal", "m"]
    programs = [
        replace(program, steps=(look_up, replace(call, fields=(call.fields[0], (text,), None)))) for text in texts
    ]
    with ReplaySandboxes() as sandboxes:
        tree = SourceTree({"durations.py": _DIES})
        player = ProgramPlayer(durations.loaded_task, tree, sandboxes, greeting(transcripts) or (), "reference")
        try:
            at_once = player.play_once(programs, 60.0)
            apart = player.play_apart(programs, 60.0)
        finally:
            player.close()

    assert sum(LOST in one.answers for one in at_once) > 2
    assert [LOST in one.answers for one in apart] == [text == "fatal" for text in texts]
