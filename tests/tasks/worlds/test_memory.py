"""A note decides a later episode, and its writer is rewarded for that."""

import asyncio
from itertools import islice

import pytest
from hypothesis import given, settings

from gametape.core.environment import EpisodeScore
from gametape.core.errors import BadInput
from gametape.tasks.worlds.experts import ErrorAtTurnsExpert, perfect_expert, script_episode
from gametape.tasks.worlds.memory import MemoryPair, joint_score, read_note
from gametape.tasks.worlds.plan import WorldAction
from gametape.tasks.worlds.spec import WorldSpec, spec_stream
from gametape.tasks.worlds.tools import vocabulary_words

from .drawing import acted, specs


def noted(pair, expert):
    place, _, judged = acted(pair.writer, expert)
    return asyncio.run(read_note(place)), judged


@settings(deadline=None, max_examples=30)
@given(specs)
def test_both_episodes_can_be_done(spec):
    pair = MemoryPair(spec)
    note, judged = noted(pair, perfect_expert)
    reader = pair.reader(note)
    _, _, later = acted(reader, perfect_expert)
    assert judged.passed
    assert later.passed
    assert f"code of {' is '.join(note)}" in reader.user_prompt
    assert pair.writer.name != reader.name
    assert {word for text in (pair.writer.user_prompt, reader.user_prompt) for word in text.split()} <= set(
        vocabulary_words()
    )


def test_the_reader_is_told_the_note_alone():
    """Nothing that it sees but the note tells the code: without it, all values look the same."""
    pair = MemoryPair(WorldSpec(seed=3))
    job = next(job for job in pair.reader([]).plan.jobs if "the code" in job.text)
    assert job.value not in job.text
    assert pair.reader([]).user_prompt.startswith("no code , ")
    assert pair.reader(["f9", "blue"]).user_prompt.startswith("code of f9 is blue , ")


def test_a_writer_without_a_note_does_its_own_work_and_gets_nothing_for_it():
    pair = MemoryPair(WorldSpec(seed=4, load_bearing=0))
    at = next(n for n, act in enumerate(script_episode(pair.writer, perfect_expert), 1) if act.job.verb == "keep")

    def forgets(_plan, job, turn, _rng):
        return WorldAction("keep", (job.item, "")) if turn == at else job.correct_action

    note, judged = noted(pair, forgets)
    assert (note, judged.passed) == ([], True)
    assert not judged.marks[at - 1].correct
    later = EpisodeScore(False, 0.0)
    assert joint_score(judged, [later]).reward == 0.0
    assert joint_score(judged, [later, EpisodeScore(True, 1.0)]).reward == 0.5
    assert not joint_score(judged, [later, EpisodeScore(True, 1.0)]).passed
    assert joint_score(judged, [EpisodeScore(True, 1.0)]).passed
    with pytest.raises(BadInput):
        joint_score(judged, [])


def test_a_writer_that_fails_its_own_work_is_not_saved_by_its_note():
    pair = MemoryPair(WorldSpec(seed=5, load_bearing=0))
    at = next(n for n, act in enumerate(script_episode(pair.writer, perfect_expert), 1) if act.job.verb != "keep")
    _, judged = noted(pair, ErrorAtTurnsExpert([at]))
    assert joint_score(judged, [EpisodeScore(True, 1.0)]).reward == 0.0


def test_codes_differ_from_pair_to_pair():
    pairs = [MemoryPair(spec) for spec in islice(spec_stream(WorldSpec(), 6), 40)]
    assert len({pair.writer.user_prompt.partition(" , ")[0] for pair in pairs}) > 30
