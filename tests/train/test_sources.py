"""The sources of a run: groups come as they finish, bounds hold, and what is past its deadline is cut and scored."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gametape.agent.state_environment import StateEnvironment
from gametape.core.config import RunConfig, TinyConfig
from gametape.core.messages import ToolResult
from gametape.core.protocols import JsonObject, Tool, Workspace
from gametape.train.activity import ActivityClock
from gametape.train.policy import TrainablePolicy, WordLanguage, create_tiny_policy, load_policy
from gametape.train.prompts import EnvironmentDataset
from gametape.train.rollouts import PromptRequest, RolloutGroup
from gametape.train.sources import ConcurrentSource, NullAnnotator, RolloutWorker, SplitSource
from tests.train.counting_arm import CountingAnnotator


class Gate(StateEnvironment[dict[str, int]]):
    """Opens when it is told to; the number of those that are open is known."""

    user_prompt = "open it"
    max_turns = 2

    def __init__(self, name: str, opens: asyncio.Event, open_now: list["Gate"]) -> None:
        self.name, self._opens, self._open_now = name, opens, open_now
        self.most_open = 0

    @property
    def bucket(self) -> str:
        return self.name

    def initial_state(self) -> dict[str, int]:
        return {}

    def tools(self) -> Sequence[Tool]:
        return [_NoTool()]

    async def reset(self) -> Workspace:
        self._open_now.append(self)
        self.most_open = max(self.most_open, len(self._open_now))
        await self._opens.wait()
        return await super().reset()

    def score_state(self, state: dict[str, int]) -> float:
        self._open_now.remove(self)
        return 0.25


class _NoTool:
    name = "none"

    @property
    def definition(self) -> JsonObject:
        return {"name": "none", "description": "", "parameters": {"type": "object", "properties": {}}}

    async def call(self, arguments: JsonObject, workspace: Workspace) -> ToolResult:
        return ToolResult(content="")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> TrainablePolicy:
    place = tmp_path_factory.mktemp("policy") / "tiny"
    shape = TinyConfig(layers=1, width=32, heads=2, window=256)
    create_tiny_policy(place, shape, 0, WordLanguage(["open", "it", "you", "call"], {"none": []}))
    return load_policy(place)


def config(**rollouts: Any) -> RunConfig:
    rl = {"group_size": 2, "turn_tokens": 4}
    return RunConfig.model_validate({"arm": "rlvr", "tasks": "gates", "rl": rl, "rollouts": rollouts})


def worker_on(policy: TrainablePolicy, gates: Sequence[Gate], settings: RunConfig) -> RolloutWorker:
    clock = ActivityClock()
    return RolloutWorker(policy.sampler(threaded=True), EnvironmentDataset(gates), settings, clock)


def test_a_group_is_taken_when_it_is_finished_whatever_was_ordered_before(policy: TrainablePolicy) -> None:
    async def run() -> list[int]:
        events = [asyncio.Event() for _ in range(4)]
        gates = [Gate(f"g{number}", event, []) for number, event in enumerate(events)]
        source = ConcurrentSource(worker_on(policy, gates, config()), NullAnnotator())
        for number in range(3):
            source.order(PromptRequest(number, number, 0))
        taken = []
        for number in (2, 0, 1):
            events[number + 1].set()
            taken.append((await source.take()).request.number)
        await source.close()
        return taken

    assert asyncio.run(run()) == [2, 0, 1]


def test_no_more_rollouts_are_open_than_may_be(policy: TrainablePolicy) -> None:
    async def run() -> int:
        opens, open_now = asyncio.Event(), list[Gate]()
        opens.set()
        gates = [Gate(f"g{number}", opens, open_now) for number in range(6)]
        worker = worker_on(policy, gates, config(in_flight=2))
        source = ConcurrentSource(worker, NullAnnotator())
        for number in range(4):
            source.order(PromptRequest(number, number, 0))
        for _ in range(4):
            await source.take()
        await source.close()
        return max(gate.most_open for gate in gates)

    assert asyncio.run(run()) == 2


class Endless(Gate):
    """Its first turn never ends: the snapshot after it hangs."""

    async def reset(self) -> Workspace:
        workspace = await super().reset()
        first = workspace.snapshot

        async def snapshot() -> str:
            workspace.snapshot = hang  # type: ignore[method-assign]
            return await first()

        async def hang() -> str:
            await asyncio.Event().wait()
            return ""

        workspace.snapshot = snapshot  # type: ignore[method-assign]
        return workspace


def test_what_is_past_its_deadline_is_cut_scored_and_marked(policy: TrainablePolicy) -> None:
    async def run() -> RolloutGroup:
        opens = asyncio.Event()
        opens.set()
        gate = Endless("endless", opens, [])
        source = ConcurrentSource(worker_on(policy, [gate], config(deadline_seconds=0.2)), NullAnnotator())
        source.order(PromptRequest(0, 0, 0))
        group = await source.take()
        await source.close()
        return group

    for rollout in asyncio.run(run()).rollouts:
        assert rollout.past_deadline
        assert rollout.result.overlong
        assert rollout.result.reward == 0.25
        assert "deadline of 0.2 seconds" in rollout.reason


class TimedOut(Gate):
    """Something in it gives up waiting, long before the deadline."""

    async def reset(self) -> Workspace:
        workspace = await super().reset()
        first = workspace.snapshot

        async def snapshot() -> str:
            workspace.snapshot = give_up  # type: ignore[method-assign]
            return await first()

        async def give_up() -> str:
            raise TimeoutError("no answer")

        workspace.snapshot = snapshot  # type: ignore[method-assign]
        return workspace


def test_a_time_out_inside_a_rollout_is_no_deadline(policy: TrainablePolicy) -> None:
    async def run() -> None:
        opens = asyncio.Event()
        opens.set()
        source = ConcurrentSource(worker_on(policy, [TimedOut("t", opens, [])], config()), NullAnnotator())
        source.order(PromptRequest(0, 0, 0))
        try:
            await source.take()
        finally:
            await source.close()

    with pytest.raises(TimeoutError, match="no answer"):
        asyncio.run(run())


def test_an_annotators_state_is_that_of_the_groups_that_were_handed_out(policy: TrainablePolicy) -> None:
    """Though it has finished with others since, and is half-way through one."""

    async def run() -> list[Any]:
        opens = asyncio.Event()
        opens.set()
        gates = [Gate(f"g{number}", opens, []) for number in range(6)]
        annotator = CountingAnnotator()
        source = ConcurrentSource(worker_on(policy, gates, config()), annotator)
        for number in range(4):
            source.order(PromptRequest(number, number, 0))
        first = await source.take()
        while len(annotator.state()["done"]) < 3:
            await asyncio.sleep(0.01)
        state = source.annotator_state()
        assert state == {"begun": [first.request.number], "done": [first.request.number]}
        others = [first, *source.finished()]
        assert source.annotator_state() == {
            "begun": [group.request.number for group in others],
            "done": [group.request.number for group in others],
        }
        again = ConcurrentSource(worker_on(policy, gates, config()), CountingAnnotator())
        again.restore_annotator(state)
        restored = again.annotator_state()
        await source.close()
        await again.close()
        return [restored == state]

    assert asyncio.run(run()) == [True]


def test_a_failure_in_a_rollout_is_raised_where_groups_are_taken(policy: TrainablePolicy) -> None:
    class Broken(Gate):
        async def reset(self) -> Workspace:
            raise RuntimeError("no such place")

    async def run() -> None:
        source = ConcurrentSource(worker_on(policy, [Broken("b", asyncio.Event(), [])], config()), NullAnnotator())
        source.order(PromptRequest(0, 0, 0))
        try:
            await source.take()
        finally:
            await source.close()

    with pytest.raises(RuntimeError, match="no such place"):
        asyncio.run(run())


def test_evaluation_goes_to_the_policy_where_an_algorithm_has_its_own_source(tmp_path: Path) -> None:
    class Listed:
        def __init__(self) -> None:
            self.ordered: list[PromptRequest] = []

        def order(self, request: PromptRequest) -> None:
            self.ordered.append(request)

        async def take(self) -> RolloutGroup:
            return RolloutGroup(self.ordered.pop(0), ())

        def finished(self) -> list[RolloutGroup]:
            return []

        async def publish(self, version: int, weights: Any) -> None: ...

        async def close(self) -> None: ...

    own, policy = Listed(), Listed()
    source = SplitSource(own, policy)
    requests = [PromptRequest(0, 0, 0, "held_out"), PromptRequest(0, 0, 0), PromptRequest(1, 0, 0)]
    for request in requests:
        source.order(request)
    assert (len(own.ordered), len(policy.ordered)) == (2, 1)
    taken = [asyncio.run(source.take()).request for _ in range(3)]
    assert taken == [requests[1], requests[2], requests[0]]


class _SlowToPrepare(EnvironmentDataset):
    """Notes which requests it was told of."""

    prepared: ClassVar[list[int]] = []

    def prepare(self, request: PromptRequest) -> None:
        self.prepared.append(request.number)


def test_what_will_probably_come_is_prepared_and_not_played(policy: TrainablePolicy) -> None:
    async def run() -> None:
        gates = [Gate("only", asyncio.Event(), [])]
        dataset = _SlowToPrepare(gates)
        worker = RolloutWorker(policy.sampler(threaded=True), dataset, config(), ActivityClock())
        source = ConcurrentSource(worker, NullAnnotator())
        source.expect([PromptRequest(number, 0, number) for number in (7, 8)])
        assert dataset.prepared == [7, 8]
        assert (source.in_flight, gates[0].most_open) == (0, 0)
        await source.close()

    asyncio.run(run())
