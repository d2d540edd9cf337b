"""A hint is used where it helps, and only there: known-good ones pass, shuffled ones do not, and forks are counted."""

import asyncio
import json
from dataclasses import replace

import pytest

from gametape.agent.episode import rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.coach.bisection import decisive_turn
from gametape.coach.coach import Coach, CoachSettings
from gametape.coach.evidence import HintCandidate, collect_evidence
from gametape.coach.forks import replay_for_forks
from gametape.coach.hint_store import hints_with_turns, rescore_hints, stored_hints_of, with_stored_hints
from gametape.coach.hinted_engine import HintedEngine
from gametape.coach.hints import DECIDES, LeakChecker
from gametape.coach.sources.judge import candidates_from_judge
from gametape.coach.statistics import HintStatistics
from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.tasks.worlds.experts import ErrorAtTurnsExpert
from gametape.tasks.worlds.rules import DEMANDS
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import demonstrate

from .obedient import TERSE, obedient

ALL = frozenset({"g0", "g1", "g2"})
LIMITS = RolloutLimits(turn_tokens=8)


def run_rollout(world, model, seed=0):
    return asyncio.run(run_episode(world, rollout_config_for(world, model, Sampling(seed=seed), LIMITS)))


def annotate(coach, episode, model, **more):
    return asyncio.run(coach.annotate(episode, model, "t", **more))


def given(episode, turn, text):
    step = [step for step in episode.steps if step.source == "agent"][turn - 1].step_id
    return HintCandidate(step, turn, "given", text, text, "given", step)


def test_the_model_keeps_to_worlds_as_it_should():
    model = obedient(base=0.0)
    episode = run_rollout(World(WorldSpec(seed=1, load_bearing=2)), model)
    assert [mark.correct for mark in episode.score.marks] == [not mark.load_bearing for mark in episode.score.marks]


def test_targets_found_by_the_coach_alone_pass_all_gates_and_every_fork_is_charged():
    """With two faults, each alone leads nowhere: the other is hinted in both branches."""
    world = World(WorldSpec(seed=3, load_bearing=2, horizon=8))
    model = obedient(base=0.0)
    coach = Coach(CoachSettings(gates=ALL, limits=LIMITS))
    hints = annotate(coach, run_rollout(world, model), model)
    marked = [(turn, job.hint()) for turn, job in enumerate(world.plan.jobs, start=1) if job.marking]
    assert [(hint.step - 2, hint.text) for hint in hints] == marked
    assert all(hint.used and hint.kl > 0 and hint.versions.teacher == 0 for hint in hints)
    for hint in hints:
        assert hint.gates.g0.value > 1
        assert hint.gates.g2.forks == 32
        assert "success 0/16 -> " in hint.gates.g2.detail
        assert hint.gates.g2.value > 0.99
    assert coach.cost.forks == 64
    pairs = coach.forks_of("t")
    assert [pair.step for pair in pairs] == [hint.step for hint in hints]
    assert [(pair.plain.passed, pair.hinted.passed) for pair in pairs] == [(False, True)] * 2
    assert all(pair.plain.turns[0] != pair.hinted.turns[0] and pair.hinted.turns[0].calls for pair in pairs)
    assert coach.cost.tokens > sum(hint.gates.g2.tokens for hint in hints) > 64 * 8


def test_shuffled_hints_are_read_and_yet_rejected():
    """They change the model's mind, so that the first gate lets them through; playing on shows what they are worth."""
    world = World(WorldSpec(seed=5, load_bearing=1, horizon=6))
    model = obedient(base=0.0)
    episode = run_rollout(world, model)
    (turn,) = (mark.turn for mark in episode.score.marks if mark.load_bearing)
    job = world.plan.jobs[turn - 1]
    for demand in (job.demand, *[other for other in DEMANDS if other != job.demand][:3]):
        coach = Coach(CoachSettings(gates=ALL, limits=LIMITS))
        (hint,) = annotate(coach, episode, model, given=[given(episode, turn, job.hint(demand))])
        assert hint.source == "given"
        assert hint.gates.g0.passed
        assert (hint.used, hint.gates.g2.passed) == (demand == job.demand,) * 2
        assert coach.cost.forks == 32


def test_a_neutral_hint_changes_nothing_and_costs_no_fork():
    model = obedient(base=0.0)
    world = World(WorldSpec(seed=5, load_bearing=1, horizon=6))
    episode = run_rollout(world, model)
    (turn,) = (mark.turn for mark in episode.score.marks if mark.load_bearing)
    coach = Coach(CoachSettings(gates=ALL, limits=LIMITS))
    (hint,) = annotate(coach, episode, model, given=[given(episode, turn, "ok , done")])
    assert (hint.gates.g0.passed, hint.gates.g0.value, hint.gates.g2, hint.used) == (False, 0.0, None, False)
    assert coach.cost.forks == 0


def test_forks_are_pooled_by_type():
    model = obedient(base=0.0)
    statistics = HintStatistics()
    forks = []
    for seed in range(20):
        world = World(WorldSpec(seed=seed, family="files", rules=("sealed",), horizon=4))
        coach = Coach(CoachSettings(gates=ALL, limits=LIMITS), statistics)
        (hint,) = annotate(coach, run_rollout(world, model), model)
        assert hint.used
        forks.append(coach.cost.forks)
    assert sorted(forks)[-3:] == [32, 32, 32]
    assert sum(forks) == 96
    later = obedient(base=0.0, version=500)
    coach = Coach(CoachSettings(gates=ALL, limits=LIMITS), statistics)
    annotate(coach, run_rollout(world, later), later)
    assert coach.cost.forks == 32  # those of the old weights have had their time
    again = HintStatistics.from_dict(json.loads(json.dumps(statistics.to_dict())))
    assert again == statistics
    assert sum(counts.located for counts in again.types.values()) == 21


def test_looks_at_the_same_time_share_their_forks():
    model = obedient(base=0.0)
    episode = run_rollout(World(WorldSpec(seed=5, load_bearing=1, horizon=4)), model)
    coach = Coach(CoachSettings(gates=ALL, limits=LIMITS))

    async def look():
        return await asyncio.gather(*(coach.annotate(episode, model, f"t{at}") for at in range(4)))

    hints = [hint for annotated in asyncio.run(look()) for hint in annotated]
    assert [hint.gates.g2.forks for hint in hints] == [32] * 4
    assert coach.cost.forks == 32


def test_a_hint_with_the_answer_in_it_is_refused_before_any_gate():
    world = World(WorldSpec(seed=5, load_bearing=1, horizon=6))
    model = obedient(base=0.0)
    episode = run_rollout(world, model)
    (turn,) = (mark.turn for mark in episode.score.marks if mark.load_bearing)
    right = world.plan.jobs[turn - 1].correct_action
    reference = LeakChecker(calls=(frozenset(right.values),))
    answer = given(episode, turn, f"rule : {right.tool} {' '.join(right.values)}")
    (hint,) = annotate(Coach(), episode, model, reference=reference, given=[answer])
    assert not hint.used
    assert "only the solution has" in hint.refused
    assert hint.gates.g0 is None


def test_ill_formed_preferences_fail_the_second_gate():
    world = World(WorldSpec(seed=5, load_bearing=1, horizon=6, family="files"))
    model = obedient(base=0.0)
    episode = run_rollout(world, model)
    (turn,) = (mark.turn for mark in episode.score.marks if mark.load_bearing)
    coach = Coach(CoachSettings(gates=frozenset({"g0", "g1"}), limits=LIMITS))
    (hint,) = annotate(coach, episode, model, given=[given(episode, turn, "rule : a file takes insert")])
    assert hint.gates.g0.passed
    assert (hint.gates.g1.passed, hint.gates.g1.detail) == (False, "no tool insert")
    assert not hint.used


def test_where_the_engine_cannot_score_the_likeliest_token_decides():
    world = World(WorldSpec(seed=5, load_bearing=1, horizon=6))
    model = replace(obedient(base=0.0), engine=HintedEngine(obedient(base=0.0).engine, TERSE, 4096, {}))
    episode = run_rollout(world, model)
    (turn,) = (mark.turn for mark in episode.score.marks if mark.load_bearing)
    (hint,) = annotate(Coach(), episode, model)
    assert (hint.step - 2, hint.used, hint.kl, hint.gates.g0.value) == (turn, True, None, 0.0)
    assert "the likeliest token changes at" in hint.gates.g0.detail
    (hint,) = annotate(Coach(), episode, model, given=[given(episode, turn, "ok , done")])
    assert not hint.used


def test_a_judge_names_a_step_and_a_rule_and_is_believed_no_more_than_others():
    world = World(WorldSpec(seed=5, load_bearing=1, horizon=6, family="files", error_delay=64))
    model = obedient(base=0.0)
    evidence = collect_evidence(run_rollout(world, model))
    read = []

    def ask(system, user):
        read.append(system + user)
        return '{"step": 4, "rule": "a sealed file such as f3 takes patch"}'

    (target,) = candidates_from_judge(evidence, ask)
    assert (target.step, target.turn, target.source) == (4, 2, "judge")
    assert target.text == "rule : a sealed file such as takes patch"
    assert evidence.opening in read[0]
    assert candidates_from_judge(evidence, lambda *_: '{"step": null}') == []
    for answer in ("no", "[]", '{"step": 99, "rule": "x"}', '{"step": 4, "rule": ""}', '{"step": "4", "rule": "x y"}'):
        with pytest.raises(BadInput, match="judge"):
            candidates_from_judge(evidence, lambda *_, answer=answer: answer)


def test_stored_targets_are_scored_again_and_retire_when_the_gap_has_closed():
    model, statistics = obedient(base=0.0), HintStatistics()
    stored = []
    for seed in range(60):
        episode = run_rollout(World(WorldSpec(seed=seed, family="files", rules=("sealed",), horizon=4)), model)
        hints = annotate(Coach(statistics=statistics), episode, model)
        stored += hints_with_turns(episode.steps, hints)
    assert all(target.hint.used for target in stored)
    assert not any(counts.retired for counts in statistics.types.values())
    learned = obedient(base=0.97, version=7)
    asked = learned.engine.asked
    for _ in range(2):
        stored = asyncio.run(rescore_hints(stored, learned, statistics))
    assert all(counts.retired and abs(counts.gap) < 0.1 for counts in statistics.types.values())
    assert not any(target.hint.used for target in stored)
    assert {target.hint.versions.teacher for target in stored} == {7}
    assert {target.hint.versions.policy for target in stored} == {0}
    assert learned.engine.asked > asked  # only for the likeliest token
    episode = run_rollout(World(WorldSpec(seed=99, family="files", rules=("sealed",), horizon=4)), model)
    (hint,) = annotate(Coach(statistics=statistics), episode, learned)
    assert not hint.used
    assert "retired" in hint.refused


def test_what_is_decided_is_kept_on_the_trajectory():
    model = obedient(base=0.0)
    episode = run_rollout(World(WorldSpec(seed=3, load_bearing=2, horizon=8)), model)
    hints = annotate(Coach(), episode, model)
    agent = {"name": "gametape", "version": "1"}
    trajectory = Trajectory.model_validate(
        {"schema_version": ATIF_VERSION, "agent": agent, "steps": [], "extra": {"task": "t", "gametape": {"a": 1}}}
    )
    with_hints = with_stored_hints(trajectory.model_copy(update={"steps": list(episode.steps)}), hints)
    read = Trajectory.model_validate(json.loads(json.dumps(with_hints.model_dump())))
    assert stored_hints_of(read) == hints
    assert read.extra["gametape"]["a"] == 1
    assert all(hint.evidence and hint.student_logprobs and hint.teacher_logprobs for hint in hints)
    assert [len(hint.student_logprobs) for hint in hints] == [hint.span[1] - hint.span[0] for hint in hints]


@pytest.mark.parametrize("seed", range(4))
def test_the_decisive_turn_is_found_without_a_word_of_error(seed):
    """Errors are told, if at all, after the last turn, and are not looked at: only success and failure are."""
    world = World(WorldSpec(seed=seed, load_bearing=1, horizon=10, error_delay=64))
    (turn, job), *_ = [(n, job) for n, job in enumerate(world.plan.jobs, start=1) if job.marking]
    model = obedient(base=0.6)
    episode = asyncio.run(demonstrate(world, ErrorAtTurnsExpert([turn]), TERSE)).episode

    async def search():
        async with replay_for_forks(episode, model, LIMITS) as forker:
            return await decisive_turn(forker, [tool.definition for tool in world.tools()], 8), forker.cost.forks

    target, forks = asyncio.run(search())
    assert (target.turn, target.source) == (turn, "counterfactual")
    assert target.text.startswith(f"rule : this takes {job.demand} , not {job.default_action.tool}")
    assert forks <= 8 * 5


def test_a_slip_that_nothing_complains_of_is_found_by_playing_on():
    world = World(WorldSpec(seed=4, load_bearing=0, horizon=8))
    at = next(turn for turn, job in enumerate(world.plan.jobs, start=1) if turn > 2 and job.verb == "put")

    def slips(_plan, job, turn, _rng):
        other = "red" if job.value != "red" else "blue"
        return job.correct_action._replace(values=(job.item, other)) if turn == at else job.correct_action

    episode = asyncio.run(demonstrate(world, slips, TERSE)).episode
    model = obedient()
    assert annotate(Coach(), episode, model) == []
    coach = Coach(CoachSettings(bisect=True, limits=LIMITS))
    (hint,) = annotate(coach, episode, model)
    assert (hint.step - 2, hint.source, hint.text) == (at, "counterfactual", DECIDES)
    assert "before this turn 8/8, from after it 0/8" in hint.evidence
    assert coach.cost.forks == 8 * 4


def test_where_nobody_ever_succeeds_no_turn_is_blamed():
    world = World(WorldSpec(seed=1, load_bearing=2, horizon=8))
    model = obedient(base=0.0)

    async def search():
        async with replay_for_forks(rolled_now, model, LIMITS) as forker:
            return await decisive_turn(forker, [], 8)

    rolled_now = run_rollout(world, model)
    assert asyncio.run(search()) is None


def test_a_rollout_that_cannot_be_done_again_is_not_forked():
    episode = run_rollout(World(WorldSpec(seed=1, horizon=4)), obedient())
    other = World(WorldSpec(seed=2, horizon=4))

    async def reopen():
        async with replay_for_forks(
            type(episode)(other, episode.steps, episode.end, episode.score, episode.usage), obedient(), LIMITS
        ):
            pass

    with pytest.raises(BadInput, match="cannot be done again"):
        asyncio.run(reopen())


def test_hinted_play_leaves_no_trace_of_the_hint_in_the_record():
    world = World(WorldSpec(seed=3, load_bearing=2, horizon=8))
    model = obedient(base=0.0)
    episode = run_rollout(world, model)
    turns = {n: job.hint() for n, job in enumerate(world.plan.jobs, start=1) if job.marking}

    async def branch():
        async with replay_for_forks(episode, model, LIMITS) as forker:
            return [await forker.branch(1, turns, seed) for seed in range(3)]

    for one in asyncio.run(branch()):
        assert one.score.passed
        for step in one.steps:
            if tokens := step.tokens():
                assert "rule" not in TERSE.tokenizer.decode_with_special(tokens.prompt_ids)
