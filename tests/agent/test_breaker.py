"""A breaker in the loop: what it asks for is done before the next question, on record, and once."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gametape.agent.breaker import BreakerTripped, NullBreaker
from gametape.agent.recorder import MemoryRecorder
from gametape.agent.replay import last_checkpoint
from gametape.agent.rollout import Rollout, RolloutConfig
from gametape.core.step import Step
from gametape.core.trajectory import ATIF_VERSION, Trajectory
from gametape.sandbox.backend import SandboxSpec
from gametape.watch.breaker import BehaviourBreaker, BreakerTrip, EscalationPatience
from gametape.watch.calibrated_monitor import monitor_specs
from gametape.watch.monitor_set import BehaviourAlarm, MonitorSet
from tests.agent.bench import Bench, bench, runs

_LOOPS = [runs("true")] * 40
"""Far more than it takes: each alarm is given two turns to help."""


def _watched(harness: Bench, notify: Callable[[BreakerTrip], object] = lambda _trip: None) -> RolloutConfig:
    """One monitor that need not be sure, so that few turns show all rungs."""
    monitors = [kind for kind in monitor_specs() if kind.name == "loop"]
    return replace(
        harness.config,
        make_breaker=lambda: BehaviourBreaker(
            MonitorSet(steps_to_false_alarm=20, monitors=monitors), EscalationPatience(grace=2), notify
        ),
    )


async def _begun(harness: Bench, start: str, config: RolloutConfig) -> Rollout:
    workspace = await harness.scheduler.open_snapshot(start, SandboxSpec())
    return await Rollout.begin(config, workspace, MemoryRecorder(), "You are an agent.", "Do it. " * 200)


async def _resumed(harness: Bench, config: RolloutConfig, steps: list[Step]) -> Rollout:
    workspace = await harness.scheduler.open_snapshot(last_checkpoint(steps), SandboxSpec())
    return await Rollout.resume(config, workspace, MemoryRecorder(steps))


def _trips(rollout: Rollout) -> list[tuple[int, str]]:
    """What the monitors asked for; a nudge about one repeated call comes earlier, and is tested with the watch."""
    return [
        (step.step_id, event["rung"])
        for step, event in _events(rollout)
        if event["kind"] == "breaker" and "repeated call" not in event["detail"]
    ]


def _events(rollout: Rollout) -> list[tuple[Step, dict[str, Any]]]:
    return [(step, event) for step in rollout.recorder.steps for event in step.gametape_extra.events or []]


def _exact(rollout: Rollout) -> bool:
    document = {
        "schema_version": ATIF_VERSION,
        "agent": {"name": "gametape", "version": "0"},
        "steps": [step.model_dump() for step in rollout.recorder.steps],
    }
    return Trajectory.model_validate(document).tokens_exact() is True


def test_an_agent_that_loops_is_nudged_then_gets_a_fresh_context_then_is_paused(tmp_path: Path) -> None:
    told: list[BreakerTrip] = []

    async def main() -> None:
        async with bench(tmp_path, _LOOPS) as (harness, start):
            rollout = await _begun(harness, start, _watched(harness, told.append))
            over = await rollout.run()
            assert isinstance(over, BreakerTripped)
            assert (over.outcome, over.rung) == ("limit", "pause")
            assert "shell" in over.reason
            assert [rung for _, rung in _trips(rollout)] == ["nudge", "fresh_context", "pause"]
            nudge, fresh, pause = (rollout.recorder.steps[number - 1] for number, _ in _trips(rollout))
            assert nudge.source == "user"
            assert "another way" in str(nudge.message)
            assert fresh.gametape_extra.compacted is True
            assert "another way" in str(fresh.message)
            assert pause.source == "system"
            assert all(event["evidence"] for _, event in _events(rollout) if event["kind"] == "breaker")
            assert _exact(rollout)

    asyncio.run(main())
    assert [trip.rung for trip in told] == ["pause"]


def test_killed_after_any_turn_it_goes_off_at_the_same_steps(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, _LOOPS) as (harness, start):
            config = _watched(harness)
            whole = await _begun(harness, start, config)
            await whole.run()
            steps = [*whole.recorder.steps]
            for killed in range(3, len(steps), 2):
                other = await _resumed(harness, config, steps[:killed])
                assert (await other.run()).outcome == "limit"
                assert _trips(other) == _trips(whole), killed

    asyncio.run(main())


def test_a_person_lets_it_go_on_after_a_pause_and_is_told_once(tmp_path: Path) -> None:
    told: list[BreakerTrip] = []

    async def main() -> None:
        async with bench(tmp_path, _LOOPS) as (harness, start):
            config = _watched(harness, told.append)
            paused = await _begun(harness, start, config)
            await paused.run()
            other = await _resumed(harness, config, [*paused.recorder.steps])
            over = await other.run()
            assert isinstance(over, BreakerTripped)
            assert over.rung == "stop"
            assert len(other.recorder.steps) > len(paused.recorder.steps) + 2

    asyncio.run(main())
    assert [trip.rung for trip in told] == ["pause", "stop"]


def test_a_fork_and_a_rollout_that_went_back_remember_what_led_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, _LOOPS) as (harness, start):
            rollout = await _begun(harness, start, _watched(harness))
            for _ in range(4):
                await rollout.turn()
            here = len(rollout.recorder.steps)
            fork = await rollout.fork(here)
            assert not _trips(rollout)
            await rollout.turn()
            await rollout.rewind(here)
            await rollout.run()
            await fork.run()
            first, _ = _trips(fork)[0]
            assert _trips(rollout)[0] == (first + 2, "nudge")
            resumed = await _resumed(harness, rollout.config, [*fork.recorder.steps[: first - 2]])
            await resumed.run()
            assert _trips(resumed) == _trips(fork)

    asyncio.run(main())


class _AsksOnce(NullBreaker):
    """Wants a fresh context before the first question."""

    def __init__(self) -> None:
        self._trips = [BreakerTrip("fresh_context", 1, BehaviourAlarm("loop", 1, 9.0, 9.0, {"actions": ["x"]}))]

    def take_trip(self) -> BreakerTrip | None:
        return self._trips.pop() if self._trips else None


def test_where_a_fresh_context_would_be_no_shorter_it_is_told_instead(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path, _LOOPS) as (harness, start):
            rollout = await _begun(harness, start, replace(harness.config, make_breaker=_AsksOnce))
            await rollout.turn()
            *_, told, _turn = rollout.recorder.steps
            assert (told.source, told.gametape_extra.compacted) == ("user", None)
            assert [event["rung"] for event in told.gametape_extra.events or []] == ["fresh_context"]
            assert "another way" in str(told.message)

    asyncio.run(main())
