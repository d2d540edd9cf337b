"""What a warm start learns from is exact: the loop's own ids, masks on what the expert said, hints in their place."""

import asyncio
from random import Random

import pytest

from gametape.agent.episode import rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.core.messages import Sampling
from gametape.core.token_segments import split_segments
from gametape.engines.chat_formats.byte_format import byte_chat_format
from gametape.engines.chat_formats.terse import TerseChatFormat
from gametape.engines.tokenizers.trained import TrainedTokenizer
from gametape.engines.tokenizers.words import word_tokenizer_json
from gametape.tasks.worlds.experts import NoisyExpert, perfect_expert, script_episode
from gametape.tasks.worlds.memory import MemoryPair
from gametape.tasks.worlds.rules import DEMANDS, PRACTICE_MARKINGS, SHARED_RULES
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.tools import tool_signatures, vocabulary_words
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import demonstrate, expert_policy, hinted_turns, scripted_policy
from gametape.train.memory_pairs import play_memory_pair

TERSE = TerseChatFormat(TrainedTokenizer(word_tokenizer_json(vocabulary_words())), tool_signatures())


def decode(ids):
    return TERSE.tokenizer.decode_with_special(ids)


@pytest.mark.parametrize("family", ["files", "database", "build"])
def test_an_expert_goes_through_the_loop_in_the_policys_own_ids(family):
    world = World(WorldSpec(seed=1, family=family, load_bearing=2))
    demonstration = asyncio.run(demonstrate(world, perfect_expert, TERSE))
    assert (demonstration.episode.score.passed, demonstration.episode.end.reason) == (True, "finished")
    (line,) = split_segments(demonstration.episode.steps)
    assert len(line.ids) < 260
    chosen = [i for i, bit in zip(line.ids, line.mask, strict=True) if bit]
    assert decode(chosen) == " ".join(
        " ".join((act.action.tool, *act.action.values, "<end>")) for act in demonstration.acts
    )
    assert "<unk>" not in decode(line.ids)
    assert decode(line.ids).startswith(
        f"<user> first {demonstration.acts[0].job.text} <act> {demonstration.acts[0].action.tool} "
    )


def test_an_expert_speaks_other_dialects_too():
    world = World(WorldSpec(seed=1, horizon=4))
    assert asyncio.run(demonstrate(world, perfect_expert, byte_chat_format())).episode.score.passed


def test_marks_agree_with_what_the_expert_did():
    world = World(WorldSpec(seed=2, load_bearing=3))
    demonstration = asyncio.run(demonstrate(world, NoisyExpert(0.7, 0.3), TERSE, seed=5))
    assert [mark.correct for mark in demonstration.episode.score.marks] == [
        act.action == act.job.correct_action for act in demonstration.acts
    ]


def test_hinted_turns_obey_the_hint_at_every_marked_turn():
    world = World(WorldSpec(seed=3, load_bearing=8, hints="instance", rules=PRACTICE_MARKINGS))
    demonstration = asyncio.run(demonstrate(world, NoisyExpert(1.0, 0.0), TERSE))
    hinted = hinted_turns(demonstration, TERSE, Random(0))
    marked = [(act, line) for act, line in zip(demonstration.acts, hinted, strict=True) if act.job.marking]
    assert len(marked) == 8
    asked = set()
    for act, line in marked:
        before, _, hint = decode(line.ids).rpartition("<user>")
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
    assert any("error at" in decode(line.ids) for line in hinted)


def test_rules_under_test_are_never_hinted():
    world = World(WorldSpec(seed=4, load_bearing=8))
    demonstration = asyncio.run(demonstrate(world, NoisyExpert(1.0, 0.0), TERSE))
    assert sum(act.job.marking in SHARED_RULES for act in demonstration.acts) == 8
    hinted = hinted_turns(demonstration, TERSE, Random(0))
    for act, line in zip(demonstration.acts, hinted, strict=True):
        if act.job.marking:
            assert decode(line.ids).rpartition("<act>")[2].split() == [act.action.tool, *act.action.values, "<end>"]
    hints = [decode(line.ids).rpartition("<user>")[2].partition("<act>")[0].split() for line in hinted]
    assert not any(marking in hint for hint in hints for marking in SHARED_RULES)


def test_made_up_rules_are_obeyed_and_never_the_ones_under_test():
    asked = set()
    for seed in range(8):
        world = World(WorldSpec(seed=seed, load_bearing=8))
        demonstration = asyncio.run(demonstrate(world, NoisyExpert(1.0, 1.0), TERSE))
        for act, line in zip(
            demonstration.acts, hinted_turns(demonstration, TERSE, Random(seed), made_up=1.0), strict=True
        ):
            if act.job.marking:
                hint, _, said = decode(line.ids).rpartition("<user>")[2].partition(" <act> ")
                demand = hint.split()[-1]
                assert hint.split()[:4] == ["rule", ":", "a", act.job.marking]
                assert demand != SHARED_RULES[act.job.marking]
                move = act.job.action_for(demand)
                assert said.split() == [move.tool, *move.values, "<end>"]
                asked.add((act.job.marking, demand))
    assert len(asked) > 20  # of 56


def test_a_share_of_made_up_rules_leaves_the_rest_as_it_was():
    world = World(WorldSpec(seed=4, load_bearing=8))
    demonstration = asyncio.run(demonstrate(world, NoisyExpert(1.0, 0.0), TERSE))
    lines = [line for seed in range(10) for line in hinted_turns(demonstration, TERSE, Random(seed), made_up=0.5)]
    hints = [decode(line.ids).rpartition("<user>")[2].partition("<act>")[0].split() for line in lines]
    told = sum(any(marking in hint for marking in SHARED_RULES) for hint in hints)
    assert 25 <= told <= 55  # of 80


def test_at_plain_things_no_hint_changes_anything():
    world = World(WorldSpec(seed=5, load_bearing=4, hints="instance", rules=PRACTICE_MARKINGS))
    demonstration = asyncio.run(demonstrate(world, NoisyExpert(1.0, 0.0), TERSE))
    hints = set()
    for act, line in zip(demonstration.acts, hinted_turns(demonstration, TERSE, Random(0)), strict=True):
        if not act.job.marking:
            hint, _, said = decode(line.ids).rpartition("<user>")[2].partition(" <act> ")
            assert said.split() == [act.job.correct_action.tool, *act.job.correct_action.values, "<end>"]
            hints.add(" ".join(hint.split()[:4]))
    assert {"rule : a plain"} < hints


@pytest.mark.parametrize("remembers", [True, False])
def test_the_turn_that_wrote_a_note_gets_what_its_reader_makes_of_it(remembers):
    """Both play all other jobs right; where no note was kept, the reader has only a guess."""
    pair = MemoryPair(WorldSpec(seed=6))

    def expert(plan, job, turn, rng):
        if job.verb == "keep" and not remembers:
            return job.correct_action._replace(values=(job.item, ""))
        if "the code" in job.text and job.verb == "put" and not remembers:
            return job.correct_action._replace(values=(job.item, "nothing"))
        return perfect_expert(plan, job, turn, rng)

    async def play(world):
        model = expert_policy(script_episode(world, expert), TERSE)
        return await run_episode(world, rollout_config_for(world, model, Sampling(), RolloutLimits()))

    episode = asyncio.run(play_memory_pair(pair, play))
    assert [step.step_id for step in episode.steps] == list(range(1, len(episode.steps) + 1))
    reward = float(remembers)
    assert (episode.score.passed, episode.score.reward) == (remembers, reward)
    others, note, reader = episode.score.credits
    (written,) = [step for step in episode.steps if step.step_id in note.steps]
    assert [call.function_name for call in written.tool_calls] == ["keep"]
    assert (note.reward, reader.reward) == (reward, reward)
    agents = [step.step_id for step in episode.steps if step.source == "agent"]
    assert sorted([*others.steps, *note.steps, *reader.steps]) == agents
    assert len(split_segments(episode.steps)) == 2
    told = next(step for step in episode.steps if step.step_id == min(reader.steps) - 1)
    assert ("no code" in told.message) != remembers


@pytest.mark.parametrize(("useful", "overlong"), [(2, True), (0, False)])
def test_a_pair_is_cut_short_where_one_of_its_episodes_is(useful, overlong):
    """A reader without one usable call has failed; one that had begun to work was cut short."""
    pair = MemoryPair(WorldSpec(seed=3, horizon=4))

    async def play(world):
        acts = script_episode(world, perfect_expert)
        turns = expert_policy(acts, TERSE).engine.turns
        reader = world is not pair.writer
        turns = [*turns[:useful], *([list(TERSE.stop_ids)] * 9)] if reader else turns
        limits = RolloutLimits(turns=4 if reader else 20)
        return await run_episode(world, rollout_config_for(world, scripted_policy(turns, TERSE), Sampling(), limits))

    episode = asyncio.run(play_memory_pair(pair, play))
    assert (episode.end.reason, episode.overlong) == ("4 turns", overlong)
