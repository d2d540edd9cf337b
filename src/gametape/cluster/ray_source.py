"""A rollout source whose samplers are actors on a cluster.

Each request is owned by one sampler. One that dies, hangs or fails is given up: its requests are ordered again
elsewhere, and another one begins in its place with the current weights.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from gametape.cluster.event_log import EventLog
from gametape.cluster.placement import sampler_resources
from gametape.cluster.request_ledger import RequestLedger
from gametape.cluster.sampler_actor import SamplerActor, SamplerStart, machine, shifted
from gametape.cluster.stored_weights import StoredWeights, store
from gametape.core.cluster_config import ClusterConfig
from gametape.train.activity import ActivityReport
from gametape.train.rollouts import PromptRequest, RolloutGroup, Weights
from gametape.train.sampler_messages import (
    ExpectedRequests,
    FinishedGroup,
    KnownToAnnotator,
    SamplerAnswer,
    SamplerEnded,
    SamplerFailure,
    SamplerOrder,
    WeightsReady,
)

CombineStates = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
"""What annotators know together, from that, and what one of them knew before and knows now."""
_LONGEST_PAUSE = 30.0
"""Seconds before another sampler begins where several have failed: what they died of may pass."""
_SLICE = 1.0


@dataclass
class _Sampler:
    """One that was begun. `epoch` is its own for ever."""

    place: int
    epoch: int
    actor: Any
    annotator: Mapping[str, Any]
    """What its coach knew when it was last heard of."""
    machine: str = ""
    in_flight: int = 0
    useful: bool = False
    """It has finished something."""


class _SamplerLost(Exception):
    """Its text says how."""


class RaySource:
    """A `PolicySource`."""

    def __init__(
        self,
        start: SamplerStart,
        config: ClusterConfig,
        epochs: Iterator[int],
        combine: CombineStates,
        events: EventLog,
    ) -> None:
        self._start, self._config, self._epochs, self._combine, self._events = start, config, epochs, combine, events
        self._ledger = RequestLedger()
        self._finished: asyncio.Queue[tuple[_Sampler, FinishedGroup] | SamplerFailure] = asyncio.Queue()
        self._up: dict[int, _Sampler] = {}
        self._beginning = config.samplers
        """Of those that were begun first, how many are not up yet."""
        self._weights: tuple[int, StoredWeights] | None = None
        self._annotator_state: Mapping[str, Any] = {}
        self._reports: list[ActivityReport] = []
        self._keepers = [asyncio.ensure_future(self._keep(place)) for place in range(config.samplers)]

    @property
    def in_flight(self) -> int:
        return sum(sampler.in_flight for sampler in self._up.values())

    def order(self, request: PromptRequest) -> None:
        self._ledger.order(request)
        self._assign()

    def expect(self, requests: Sequence[PromptRequest]) -> None:
        self._tell_all(ExpectedRequests(tuple(requests)))

    async def take(self) -> RolloutGroup:
        """The next that is finished, whichever was ordered first."""
        return self._taken(await self._finished.get())

    def finished(self) -> list[RolloutGroup]:
        groups = []
        while not self._finished.empty():
            message = self._finished.get_nowait()
            if isinstance(message, SamplerFailure):
                self._finished.put_nowait(message)
                break
            groups.append(self._taken(message))
        return groups

    def take_activity(self) -> Sequence[ActivityReport]:
        reports, self._reports = self._reports, []
        return reports

    def annotator_state(self) -> Mapping[str, Any]:
        return self._annotator_state

    def restore_annotator(self, state: Mapping[str, Any]) -> None:
        self._annotator_state = state
        for sampler in self._up.values():
            sampler.annotator = state
        self._tell_all(KnownToAnnotator(state))

    async def publish(self, version: int, weights: Weights) -> None:
        """Samplers read them when they get to it. One that has fallen behind goes on with the newest."""
        stored = await asyncio.to_thread(store, weights)
        self._weights = (version, stored)
        self._tell_all(WeightsReady(version, stored))

    async def close(self) -> None:
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    def _taken(self, message: tuple[_Sampler, FinishedGroup] | SamplerFailure) -> RolloutGroup:
        """A group that is handed out, and with it what its coach has learned."""
        if isinstance(message, SamplerFailure):
            self._finished.put_nowait(message)
            raise SamplerEnded(message)
        sampler, finished = message
        if finished.group.request.purpose == "train":
            self._annotator_state = self._combine(self._annotator_state, sampler.annotator, finished.annotator)
            sampler.annotator = finished.annotator
        return finished.group

    def _tell_all(self, order: SamplerOrder) -> None:
        for sampler in self._up.values():
            sampler.actor.tell.remote([order])

    def _assign(self) -> None:
        for epoch, request in self._ledger.assign(self._beginning):
            self._up[epoch].actor.tell.remote([request])

    async def _keep(self, place: int) -> None:
        """See to it that there is a sampler in this place, until there is no point in it."""
        failures, first = 0, True
        while True:
            sampler = self._begin(place)
            try:
                await self._attend(sampler, first)
            except _SamplerLost as lost:
                if sampler.machine or not self._up:  # one for which there is no room harms nobody while others work
                    failures = 1 if sampler.useful else failures + 1
                self._give_up(sampler, first, str(lost))
                if failures > self._config.restarts:
                    self._finished.put_nowait(SamplerFailure(f"sampler {place} failed {failures} times: {lost}"))
                    return
            finally:
                ray.kill(sampler.actor)
            first = False
            await asyncio.sleep(min(_LONGEST_PAUSE, 2.0**failures - 2.0))

    def _begin(self, place: int) -> _Sampler:
        wanted = sampler_resources(self._config)
        actor = (
            ray.remote(SamplerActor)
            .options(
                num_cpus=wanted.cpus,
                num_gpus=wanted.gpus,
                max_concurrency=4,
                scheduling_strategy="SPREAD",
            )
            .remote(self._start)
        )
        return _Sampler(place, next(self._epochs), actor, self._annotator_state)

    async def _attend(self, sampler: _Sampler, first: bool) -> None:
        """Listen to it until it is lost. Every answer is a sign of life, and one is due every second."""
        pid, sampler.machine = await self._answer(sampler.actor.identity.remote(), self._config.start_seconds)
        self._beginning -= first
        self._up[sampler.epoch] = sampler
        self._ledger.join(sampler.epoch)
        sampler.annotator = self._annotator_state
        orders: list[SamplerOrder] = [KnownToAnnotator(self._annotator_state)] if self._annotator_state else []
        orders += [WeightsReady(*self._weights)] if self._weights else []
        if orders:
            sampler.actor.tell.remote(orders)
        self._events.write("up", f"sampler {sampler.place}", sampler.epoch, pid=pid)
        self._assign()
        while True:
            answers = await self._answer(sampler.actor.poll.remote(_SLICE), self._config.heartbeat_seconds)
            for answer in answers:
                self._hear(sampler, answer)

    async def _answer(self, reference: Any, patience: float) -> Any:
        """Time is counted here and not by the clock, which also goes on while this very process is stopped."""
        waiting, silence = asyncio.wrap_future(reference.future()), 0.0
        try:
            while silence < patience:
                began = time.monotonic()
                done, _ = await asyncio.wait((waiting,), timeout=_SLICE)
                if done:
                    return waiting.result()
                silence += min(time.monotonic() - began, 2 * _SLICE)
        except (RayError, GetTimeoutError) as error:
            raise _SamplerLost(f"died: {type(error).__name__}") from None
        finally:
            waiting.cancel()
        raise _SamplerLost(f"has shown no sign of life for {patience:.0f} seconds")

    def _hear(self, sampler: _Sampler, answer: SamplerAnswer) -> None:
        if isinstance(answer, SamplerFailure):
            if answer.refused:
                self._finished.put_nowait(answer)
            raise _SamplerLost(answer.reason)
        if isinstance(answer, ActivityReport):
            sampler.in_flight = answer.in_flight
            self._reports.append(self._by_own_clock(sampler, answer))
        elif isinstance(answer, FinishedGroup) and self._ledger.accept(sampler.epoch, answer.group.request):
            sampler.useful = True
            self._finished.put_nowait((sampler, answer))

    def _by_own_clock(self, sampler: _Sampler, report: ActivityReport) -> ActivityReport:
        if sampler.machine == machine():
            return report
        now = time.monotonic()
        return replace(report, until=now, intervals=shifted(report.intervals, now - report.until))

    def _give_up(self, sampler: _Sampler, first: bool, why: str) -> None:
        if self._up.pop(sampler.epoch, None) is None:
            self._beginning -= first
        orphans = self._ledger.leave(sampler.epoch)
        self._events.write("lost", f"sampler {sampler.place}", sampler.epoch, why=why, requests=len(orphans))
        self._assign()
