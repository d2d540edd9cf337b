"""Rollouts of the policy in one process with the learner. `async_source` samples in a process of its own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.coach.hinted_engine import with_hints
from gametape.coach.writers.choice import worded_for
from gametape.core.config import RunConfig
from gametape.core.environment import EpisodeScore
from gametape.core.messages import Sampling
from gametape.core.protocols import Environment
from gametape.core.seeds import seed_for
from gametape.engines.token_conversation import TokenModel
from gametape.evals.suite import SuiteItem
from gametape.sandbox.keeper_client import SandboxError
from gametape.tasks.worlds.memory import MemoryWorld, WriterWorld
from gametape.tasks.worlds.world import World
from gametape.train.activity import ActivityClock, ActivityReport, EpisodePhases, PhasedEngine
from gametape.train.memory_pairs import play_memory_pair
from gametape.train.prompts import PreparableDataset, PromptDataset
from gametape.train.rollouts import (
    GroupAnnotator,
    GroupSource,
    PromptRequest,
    RolloutGroup,
    RolloutSample,
    Weights,
)

Reward = Callable[[EpisodeScore], float]
"""What an episode with this score is worth to the learner."""


def environment_reward(score: EpisodeScore) -> float:
    """The environment's own reward."""
    return score.reward


class PolicySource(GroupSource, Protocol):
    """A source of the policy's own rollouts, which also says how it goes."""

    @property
    def in_flight(self) -> int:
        """Rollouts that are open now."""
        ...

    def expect(self, requests: Sequence[PromptRequest]) -> None:
        """These will probably be ordered next: what takes long before they can be played may begin."""
        ...

    def take_activity(self) -> Sequence[ActivityReport]:
        """What other processes have reported since the last time; this process has its own clock."""
        ...

    def annotator_state(self) -> Mapping[str, Any] | None:
        """What the annotator knew when it was done with the groups that were handed out so far, and not what it has
        found in others since; None where it is as it is."""
        ...

    def restore_annotator(self, state: Mapping[str, Any]) -> None:
        """Take over what `annotator_state` gave in an earlier run."""
        ...


def training_limits(config: RunConfig) -> RolloutLimits:
    """The limits of a rollout in training. Its deadline is not among them: that cuts turns too."""
    return RolloutLimits(turns=config.rl.turns, turn_tokens=config.rl.turn_tokens, wall_seconds=None)


class RolloutWorker:
    """Runs episodes with one model, many at once, up to `rollouts.in_flight`. The seed of a rollout comes from its
    request and its number."""

    def __init__(
        self,
        model: TokenModel,
        dataset: PromptDataset,
        config: RunConfig,
        clock: ActivityClock,
        reward: Reward = environment_reward,
    ) -> None:
        self.model, self.clock = model, clock
        self.in_flight = 0
        self._dataset, self._config, self._reward = dataset, config, reward
        self._limits = training_limits(config)
        waits = not config.rl.reproducible
        self._deadline = config.rollouts.deadline_seconds if waits else None
        self._slots: AbstractAsyncContextManager[Any] = (
            asyncio.Semaphore(config.rollouts.in_flight) if waits else nullcontext()
        )

    def expect(self, requests: Sequence[PromptRequest]) -> None:
        """Prepare their prompts, where that takes a while."""
        if isinstance(self._dataset, PreparableDataset):
            for request in requests:
                self._dataset.prepare(request)

    async def run_group(self, request: PromptRequest) -> tuple[RolloutGroup, Sequence[Episode]]:
        """The first rollout also keeps its turns in words, for monitors: one is enough, because what all rollouts of a
        group have in common comes from their prompt. An evaluation has one rollout of each prompt."""
        if request.purpose != "train":
            episode = await self._run_held_out(request)
            return RolloutGroup(request, (RolloutSample.from_episode(episode),)), [episode]
        item = self._dataset.prompt(request)
        names = [f"d{request.number:08}.{member:03}" for member in range(self._config.rl.group_size)]
        sampling = Sampling(temperature=self._config.rl.temperature, seed=self._config.seed)
        episodes = await asyncio.gather(*(self._run_episode(item, name, sampling) for name in names))
        episodes = [self._rewarded(episode) for episode in episodes]
        rollouts = (RolloutSample.from_episode(episode, with_texts=at == 0) for at, episode in enumerate(episodes))
        return RolloutGroup(request, tuple(rollouts)), episodes

    async def _run_held_out(self, request: PromptRequest) -> Episode:
        """The names of these attempts come before those of any other request, so that an engine in lockstep takes them
        in the same order whatever else is under way. Their seeds are the same in every evaluation."""
        item = self._dataset.held_out(request.number)
        name = f"{'b' if request.purpose == 'hinted' else 'a'}{request.number:06}"
        if request.purpose == "hinted" and isinstance(item.environment, World):
            hints = rule_hints(item.environment)
            said = {turn: worded_for(self.model.chat_format, text) for turn, text in hints.items()}
            item = replace(item, adapt_model=partial(with_hints, hints=said))
        seed = seed_for(self._config.seed, "held out")
        return await self._run_episode(item, name, Sampling(temperature=self._config.eval.temperature, seed=seed))

    async def _run_episode(self, item: SuiteItem, name: str, sampling: Sampling) -> Episode:
        """`name` is the attempt's own in the whole run: its seed, and its place in the engine's order, follow from
        it."""
        assert sampling.seed is not None
        sampling = sampling.model_copy(update={"seed": seed_for(sampling.seed, name)})
        phases = EpisodePhases(self.clock)
        model = item.adapt_model(replace(self.model, engine=PhasedEngine(self.model.engine, phases)))

        async def play(environment: Environment) -> Episode:
            config = rollout_config_for(environment, model, sampling, self._limits, f"{name}{_part(environment)}")
            return await run_episode(environment, config, SandboxError, self._deadline, phases)

        async with self._slots:
            self.in_flight += 1
            try:
                with self.model.engine.participant():
                    if isinstance(item.environment, WriterWorld):
                        return await play_memory_pair(item.environment.pair, play)
                    return await play(item.environment)
            finally:
                self.in_flight -= 1

    def _rewarded(self, episode: Episode) -> Episode:
        if episode.score is None:
            return episode
        return replace(episode, score=replace(episode.score, reward=self._reward(episode.score)))


def _part(environment: Environment) -> str:
    """What tells the conversations of one attempt apart, where it has several."""
    return f".{environment.part}" if isinstance(environment, MemoryWorld) else ""


def rule_hints(world: World) -> dict[int, str]:
    """By turn, in a world: the hint that states the rule which applies there."""
    return {turn: job.hint() for turn, job in enumerate(world.plan.jobs, start=1) if job.marking}


@runtime_checkable
class StatefulAnnotator(Protocol):
    """An annotator that learns from what it sees, and goes on with that after a restart."""

    def state(self) -> Mapping[str, Any]: ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


class NullAnnotator:
    """An `Annotator` that finds nothing."""

    async def annotate(self, group: RolloutGroup, episodes: Sequence[Episode]) -> RolloutGroup:  # noqa: ARG002
        return group


class _LocalSource:
    """What the sources on the learner's own tensors have in common."""

    def __init__(self, worker: RolloutWorker, annotator: GroupAnnotator) -> None:
        self._worker, self._annotator = worker, annotator

    @property
    def in_flight(self) -> int:
        return self._worker.in_flight

    def expect(self, requests: Sequence[PromptRequest]) -> None:
        self._worker.expect(requests)

    def take_activity(self) -> Sequence[ActivityReport]:
        return ()

    async def _annotate(self, group: RolloutGroup, episodes: Sequence[Episode]) -> RolloutGroup:
        if group.request.purpose != "train":
            return group
        with self._worker.clock.during("coach"):
            return await self._annotator.annotate(group, episodes)


class LockstepSource(_LocalSource):
    """A `PolicySource` for reproducible runs: all ordered groups are sampled together, by the weights as they are when
    the first of them is taken."""

    def __init__(self, worker: RolloutWorker, annotator: GroupAnnotator) -> None:
        super().__init__(worker, annotator)
        self._ordered: list[PromptRequest] = []
        self._finished: list[RolloutGroup] = []

    def order(self, request: PromptRequest) -> None:
        self._ordered.append(request)

    async def take(self) -> RolloutGroup:
        """All ordered requests are sampled at once: the engine batches them."""
        if not self._finished:
            requests, self._ordered = self._ordered, []
            groups = await asyncio.gather(*map(self._worker.run_group, requests))
            self._finished = [await self._annotate(group, episodes) for group, episodes in groups]
        return self._finished.pop(0)

    def finished(self) -> list[RolloutGroup]:
        groups, self._finished = self._finished, []
        return groups

    async def publish(self, version: int, weights: Weights) -> None:  # noqa: ARG002
        """The engine samples from the tensors that the learner has changed. It also drops all that it has read, so that
        a run that begins here later comes to the same numbers."""
        engine = self._worker.model.engine
        engine.weights_changed(version)
        engine.forget()

    def annotator_state(self) -> Mapping[str, Any] | None:
        return None

    def restore_annotator(self, state: Mapping[str, Any]) -> None:
        """The algorithm restores its own."""

    async def close(self) -> None:
        await self._worker.model.close()


class ConcurrentSource(_LocalSource):
    """A `PolicySource` that never waits: every ordered group is played at once, as far as there is room, beside the
    others; it is coached when its last rollout ends, and can be taken in that moment."""

    def __init__(self, worker: RolloutWorker, annotator: GroupAnnotator) -> None:
        super().__init__(worker, annotator)
        self._finished: asyncio.Queue[tuple[RolloutGroup, Mapping[str, Any] | None] | BaseException] = asyncio.Queue()
        self._playing: set[asyncio.Task[None]] = set()
        self._annotator_state = self._current_state()

    def order(self, request: PromptRequest) -> None:
        task = asyncio.ensure_future(self._play(request))
        self._playing.add(task)
        task.add_done_callback(self._ended)

    async def take(self) -> RolloutGroup:
        """The next that is finished, whichever was ordered first."""
        return self._handed_out(await self._finished.get())

    def finished(self) -> list[RolloutGroup]:
        return [self._handed_out(self._finished.get_nowait()) for _ in range(self._finished.qsize())]

    async def publish(self, version: int, weights: Weights) -> None:  # noqa: ARG002
        """The engine samples from the tensors that the learner has changed while it was paused. Rollouts that are under
        way go on with the new weights; each token names those that sampled it."""
        self._worker.model.engine.weights_changed(version)

    async def close(self) -> None:
        playing = list(self._playing)
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)
        await self._worker.model.close()

    def annotator_state(self) -> Mapping[str, Any] | None:
        return self._annotator_state

    def restore_annotator(self, state: Mapping[str, Any]) -> None:
        if state and isinstance(self._annotator, StatefulAnnotator):
            self._annotator.restore(state)
        self._annotator_state = self._current_state()

    async def _play(self, request: PromptRequest) -> None:
        """Annotators take one group at a time, so that what they know just after one is not mixed with the next."""
        group = await self._annotate(*await self._worker.run_group(request))
        self._finished.put_nowait((group, self._current_state() if request.purpose == "train" else None))

    def _current_state(self) -> Mapping[str, Any]:
        return self._annotator.state() if isinstance(self._annotator, StatefulAnnotator) else {}

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._playing.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._finished.put_nowait(error)

    def _handed_out(self, finished: tuple[RolloutGroup, Mapping[str, Any] | None] | BaseException) -> RolloutGroup:
        if isinstance(finished, BaseException):
            raise finished
        group, state = finished
        self._annotator_state = self._annotator_state if state is None else state
        return group


class SplitSource:
    """A source of an algorithm's own for what is learned from, and the policy's for evaluation."""

    def __init__(self, own: GroupSource, policy: GroupSource) -> None:
        self._own, self._policy = own, policy
        self._ordered = 0

    def order(self, request: PromptRequest) -> None:
        own = request.purpose == "train"
        self._ordered += own
        (self._own if own else self._policy).order(request)

    async def take(self) -> RolloutGroup:
        """What was ordered to be learned from comes first."""
        if not self._ordered:
            return await self._policy.take()
        self._ordered -= 1
        return await self._own.take()

    def finished(self) -> list[RolloutGroup]:
        own = self._own.finished()
        self._ordered -= len(own)
        return [*own, *self._policy.finished()]

    async def publish(self, version: int, weights: Weights) -> None:
        await self._own.publish(version, weights)
        await self._policy.publish(version, weights)

    async def close(self) -> None:
        await self._own.close()
        await self._policy.close()
