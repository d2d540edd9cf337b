"""The ranks of a learner as actors of a cluster."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from gametape.cluster.placement import Resources
from gametape.cluster.rank_actor import RankActor
from gametape.cluster.stored_weights import StoredWeights
from gametape.train.rank_messages import Alive, Message, RankCall
from gametape.train.rank_process import RankStart

_POLL = 0.5


class NoRoom(Exception):
    """Not all ranks have found a place in time."""


class NotBegun(Exception):
    """Ranks have ended, or said nothing, before they began to learn. Its text says how."""


class ActorRanks:
    """A `RankTransport`. Actors that are close to each other are taken where there is a choice."""

    def __init__(self, starts: Sequence[RankStart], resources: Resources, start_seconds: float) -> None:
        """Waits until all of them are there."""
        bundle = {"CPU": resources.cpus} | ({"GPU": resources.gpus} if resources.gpus else {})
        self._group = placement_group([bundle] * len(starts), strategy="PACK")
        self._actors: list[Any] = []
        self._ended: dict[int, str] = {}
        self._polls: dict[Any, int] = {}
        try:
            self._begin(starts, resources, start_seconds)
        except RayError as error:
            self.kill()
            raise NotBegun(f"have not begun: {type(error).__name__}") from error
        except BaseException:
            self.kill()
            raise

    def _begin(self, starts: Sequence[RankStart], resources: Resources, start_seconds: float) -> None:
        if not self._group.wait(start_seconds):
            raise NoRoom
        actor_class = ray.remote(RankActor)
        for rank in range(len(starts)):
            place = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=rank)
            options = {"num_cpus": resources.cpus, "num_gpus": resources.gpus, "max_concurrency": 4}
            self._actors.append(actor_class.options(scheduling_strategy=place, **options).remote())
        self.pids: list[int] = ray.get([actor.pid.remote() for actor in self._actors], timeout=start_seconds)
        meeting = ray.get(self._actors[0].meeting_point.remote(), timeout=start_seconds)
        for actor, start in zip(self._actors, starts, strict=True):
            actor.begin.remote(replace(start, place=replace(start.place, store=meeting)))
        for rank in range(len(starts)):
            self._poll(rank)

    @property
    def world(self) -> int:
        return len(self._actors)

    def send(self, call: RankCall | None) -> None:
        for actor in self._actors:
            actor.tell.remote([call])

    def receive(self, seconds: float) -> list[tuple[int, Message]]:
        messages: list[tuple[int, Message]] = []
        if not self._polls:
            time.sleep(seconds)
            return messages
        ready, _ = ray.wait(list(self._polls), timeout=seconds)
        for reference in ready:
            rank = self._polls.pop(reference)
            try:
                messages += [(rank, message) for message in [Alive(), *ray.get(reference)]]
            except RayError as error:
                self._ended[rank] = f"died: {type(error).__name__}"
                continue
            self._poll(rank)
        return messages

    def ended(self, rank: int) -> str | None:
        return self._ended.get(rank)

    def output_of(self, rank: int) -> str:  # noqa: ARG002
        return ""

    def published(self, expected: int) -> StoredWeights:
        """What the first rank has published, by reference. They are in the object store afterwards, where they stay
        when the rank is gone."""
        reference = self._actors[0].published.remote()
        ray.wait([reference], fetch_local=False)
        return StoredWeights(reference, expected)

    def join(self, seconds: float) -> None:
        """Actors end when they are killed."""

    def kill(self) -> None:
        for actor in self._actors:
            ray.kill(actor)
        with suppress(RayError):
            remove_placement_group(self._group)

    def close(self) -> None:
        self._polls.clear()

    def _poll(self, rank: int) -> None:
        self._polls[self._actors[rank].poll.remote(_POLL)] = rank
