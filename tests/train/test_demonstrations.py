"""What a warm start learns from is exact: the loop's own ids, masks on what the expert said, hints in their place."""

import asyncio
from random import Random

import pytest

from gametape.agent.limits import Limits
from gametape.agent.playing import setting_for
from gametape.core.messages import Sampling
from gametape.core.segments import segments
from gametape.engines.dialects.byte_frame import byte_dialect
from gametape.engines.dialects.terse import TerseDialect
from gametape.engines.tokenizing.trained import TrainedTokenizer
from gametape.engines.tokenizing.words import words_document
from gametape.tasks.worlds.experts import Noisy, perfect, script
from gametape.tasks.worlds.memory import MemoryPair
from gametape.tasks.worlds.rules import DEMANDS, PRACTICE, SHARED
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.tools import signatures
from gametape.tasks.worlds.vocabulary import words
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import demonstrate, expert_model, hinted_turns
from gametape.train.memory_pairs import play_pair

TERSE = TerseDialect(TrainedTokenizer(words_document(words())), signatures())


def shown(ids):
    return TERSE.tokenizer.decode_marked(ids)


@pytest.mark.parametrize("family", ["files", "database", "build"])
def test_an_expert_goes_through_the_loop_in_the_policys_own_ids(family):
    world = World(WorldSpec(seed=1, family=family, load_bearing=2))
    found = asyncio.run(demonstrate(world, perfect, TERSE))
    assert (found.played.judged.passed, found.played.over.reason) == (True, "finished")
    (line,) = segments(found.played.steps)
    assert len(line.ids) < 260
    chosen = [i for i, bit in zip(line.ids, line.mask, strict=True) if bit]
    assert shown(chosen) == " ".join(" ".join((act.move.tool, *act.move.values, "<end>")) for act in found.acts)
    assert "<unk>" not in shown(line.ids)
    assert shown(line.ids).startswith(f"<user> first {found.acts[0].job.text} <act> {found.acts[0].move.tool} ")


def test_an_expert_speaks_other_dialects_too():
    world = World(WorldSpec(seed=1, horizon=4))
    assert asyncio.run(demonstrate(world, perfect, byte_dialect())).played.judged.passed


def test_marks_agree_with_what_the_expert_did():
    world = World(WorldSpec(seed=2, load_bearing=3))
    found = asyncio.run(demonstrate(world, Noisy(0.7, 0.3), TERSE, seed=5))
    assert [mark.right for mark in found.played.judged.marks] == [act.move == act.job.right for act in found.acts]


def test_hinted_turns_obey_the_hint_at_every_marked_turn():
    world = World(WorldSpec(seed=3, load_bearing=8, hints="instance", rules=PRACTICE))
    found = asyncio.run(demonstrate(world, Noisy(1.0, 0.0), TERSE))
    hinted = hinted_turns(found, TERSE, Random(0))
    marked = [(act, line) for act, line in zip(found.acts, hinted, strict=True) if act.job.marking]
    assert len(marked) == 8
    asked = set()
    for act, line in marked:
        before, _, hint = shown(line.ids).rpartition("<user>")
        told, _, said = hint.partition(" <act> ")
        assert told.startswith(f" rule : a {act.job.marking} {act.job.kind} takes ")
        demand = told.split()[-1]
        asked.add(demand)
        tool, item, value, *rest = said.split()
        assert (item, value) == (act.job.item, act.job.value)
        assert (tool, *rest[:-1]) == ((demand,) if demand not in ("force", "safe", "once") else (tool, demand))
        assert sum(line.mask) == len(said.split())
        assert before.rstrip().endswith(f"{act.job.text}")
    assert asked <= set(DEMANDS)
    assert any("error at" in shown(line.ids) for line in hinted)


def test_rules_under_test_are_never_hinted():
    world = World(WorldSpec(seed=4, load_bearing=8))
    found = asyncio.run(demonstrate(world, Noisy(1.0, 0.0), TERSE))
    assert sum(act.job.marking in SHARED for act in found.acts) == 8
    hinted = hinted_turns(found, TERSE, Random(0))
    for act, line in zip(found.acts, hinted, strict=True):
        if act.job.marking:
            assert shown(line.ids).rpartition("<act>")[2].split() == [act.move.tool, *act.move.values, "<end>"]
    hints = [shown(line.ids).rpartition("<user>")[2].partition("<act>")[0].split() for line in hinted]
    assert not any(marking in hint for hint in hints for marking in SHARED)


def test_made_up_rules_are_obeyed_and_never_the_ones_under_test():
    asked = set()
    for seed in range(8):
        world = World(WorldSpec(seed=seed, load_bearing=8))
        found = asyncio.run(demonstrate(world, Noisy(1.0, 1.0), TERSE))
        for act, line in zip(found.acts, hinted_turns(found, TERSE, Random(seed), made_up=1.0), strict=True):
            if act.job.marking:
                hint, _, said = shown(line.ids).rpartition("<user>")[2].partition(" <act> ")
                demand = hint.split()[-1]
                assert hint.split()[:4] == ["rule", ":", "a", act.job.marking]
                assert demand != SHARED[act.job.marking]
                move = act.job.obeying(demand)
                assert said.split() == [move.tool, *move.values, "<end>"]
                asked.add((act.job.marking, demand))
    assert len(asked) > 20  # of 56


def test_a_share_of_made_up_rules_leaves_the_rest_as_it_was():
    world = World(WorldSpec(seed=4, load_bearing=8))
    found = asyncio.run(demonstrate(world, Noisy(1.0, 0.0), TERSE))
    lines = [line for seed in range(10) for line in hinted_turns(found, TERSE, Random(seed), made_up=0.5)]
    hints = [shown(line.ids).rpartition("<user>")[2].partition("<act>")[0].split() for line in lines]
    told = sum(any(marking in hint for marking in SHARED) for hint in hints)
    assert 25 <= told <= 55  # of 80


def test_at_plain_things_no_hint_changes_anything():
    world = World(WorldSpec(seed=5, load_bearing=4, hints="instance", rules=PRACTICE))
    found = asyncio.run(demonstrate(world, Noisy(1.0, 0.0), TERSE))
    hints = set()
    for act, line in zip(found.acts, hinted_turns(found, TERSE, Random(0)), strict=True):
        if not act.job.marking:
            hint, _, said = shown(line.ids).rpartition("<user>")[2].partition(" <act> ")
            assert said.split() == [act.job.right.tool, *act.job.right.values, "<end>"]
            hints.add(" ".join(hint.split()[:4]))
    assert {"rule : a plain"} < hints


@pytest.mark.parametrize("remembers", [True, False])
def test_a_writer_gets_what_its_reader_makes_of_the_note(remembers):
    """Both play all jobs right; where no note was kept, the reader has only a guess, and both go without a reward."""
    pair = MemoryPair(WorldSpec(seed=6))

    def expert(plan, job, turn, rng):
        if job.verb == "keep" and not remembers:
            return job.right._replace(values=(job.item, ""))
        if "the code" in job.text and job.verb == "put" and not remembers:
            return job.right._replace(values=(job.item, "nothing"))
        return perfect(plan, job, turn, rng)

    def setting(assignment):
        model = expert_model(script(assignment, expert), TERSE)
        return setting_for(assignment, model, Sampling(), Limits())

    first, second = asyncio.run(play_pair(pair, setting))
    assert (first.judged.reward, second.judged.reward) == ((1.0, 1.0) if remembers else (0.0, 0.0))
    assert ("no code" in second.steps[1].message) != remembers
