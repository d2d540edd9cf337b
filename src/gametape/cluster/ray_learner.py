"""A learner whose ranks are actors on a cluster, and which outlives them.

What was learned since the last checkpoint is kept as references to its batches. When a rank dies or hangs, all of them
begin again from that checkpoint and learn the same batches once more: the loop does not notice, and no rollout is lost.
"""

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import ray
from torch import Tensor

from gametape.cluster.event_log import EventLog
from gametape.cluster.nodes import living_nodes
from gametape.cluster.placement import fewer_ranks, parts_that_fit, rank_resources
from gametape.cluster.ray_ranks import ActorRanks, NoRoom, NotBegun
from gametape.cluster.stored_weights import StoredWeights
from gametape.core.errors import BadInput, GametapeError
from gametape.engines.model_names import SHARDS
from gametape.engines.torch.device import Placement
from gametape.train import checkpoints
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.checkpoint_shards import NotWritten
from gametape.train.rank_group import RankEnded, RankGroup
from gametape.train.rank_process import Opened, RankStart
from gametape.train.rollouts import TargetMetrics, TokenReading
from gametape.train.run_parts import RunContext
from gametape.train.shards import RankPlace
from gametape.train.update_metrics import UpdateMetrics

T = TypeVar("T")
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_TELL = 5.0


@dataclass(frozen=True)
class _Update:
    """One that was made. The batch is in the object store."""

    batch: Any
    step: int
    version: int
    spent: float


@dataclass(frozen=True)
class _Save:
    """A checkpoint that was begun after the updates before it."""

    directory: Path
    written: "Future[None]" = field(default_factory=Future)


class RayLearner:
    """A `Learner`."""

    def __init__(self, run: RunContext, placement: Placement, epochs: Iterator[int], events: EventLog) -> None:
        self._run, self._placement, self._epochs, self._events = run, placement, epochs, events
        self._lock = threading.RLock()
        self._journal: list[_Update | _Save] = []
        self._failures = 0
        self._most = run.config.ranks
        """Ranks that may find room: one fewer after each time that they did not."""
        self._closed = False
        self.ended: Future[None] = Future()
        self._ranks, self._group = self._begin_first()

    @property
    def parameters(self) -> int:
        return self._opened.parameters

    @property
    def device(self) -> str:
        return self._opened.device

    def update(self, batch: TrainBatch, step: int, version: int, spent: float = 0.0) -> UpdateMetrics:
        entry = _Update(ray.put(batch), step, version, spent)
        algorithm = self._run.algorithm
        learned = self._with_group(lambda group: _learn(group, entry), then=entry)
        update, algorithm.target_metrics, algorithm.token_readings = learned
        self._failures = 0
        return update

    def score(self, samples: Sequence[TrainSample]) -> list[Tensor]:
        if not samples:
            return []
        reference = ray.put(list(samples))
        scored: list[Tensor] = self._with_group(lambda group: group.call("score", reference))
        return scored

    def publish(self) -> StoredWeights:
        """By reference: they go from the first rank to the samplers."""
        return self._with_group(lambda group: self._ranks.published(group.call("publish")))

    def save(self, directory: Path) -> "Future[None]":
        """Also done again if the ranks are lost meanwhile: the same weights come into the same directory."""
        self._forget_saved()
        entry = _Save(directory.absolute())
        self._with_group(lambda group: _save(group, entry), then=entry)
        return entry.written

    def load(self, directory: Path) -> None:
        self._journal.clear()
        self._with_group(lambda group: group.call("load", directory.absolute()))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._group.close()

    def _with_group(self, work: Callable[[RankGroup], T], then: "_Update | _Save | None" = None) -> T:
        """Do it with ranks that live, with others if these die of it; and `then` it is to be done again with those that
        follow."""
        with self._lock:
            while True:
                try:
                    if self._group.ended.done():
                        self._begin_again()
                    done = work(self._group)
                except GametapeError as error:
                    lost = error if isinstance(error, RankEnded) else _death_of(self._group)
                    if lost is None:
                        raise
                    self._note_loss(lost)
                    continue
                self._journal += [then] if then else []
                return done

    def _note_loss(self, lost: RankEnded) -> None:
        """Raises it if there have been too many without an update between them."""
        self._failures += 1
        if self._failures > self._run.config.cluster.restarts or self._closed:
            self._fail(lost)
            raise lost
        with suppress(InvalidStateError):
            self._group.ended.set_exception(lost)

    def _fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):
            self.ended.set_exception(error)
        for entry in self._journal:
            if isinstance(entry, _Save):
                with suppress(InvalidStateError):
                    entry.written.set_exception(error)

    def _begin_first(self) -> tuple[ActorRanks, RankGroup]:
        while True:
            try:
                return self._begin()
            except RankEnded:
                self._failures += 1
                if self._failures > self._run.config.cluster.restarts:
                    raise

    def _begin(self) -> tuple[ActorRanks, RankGroup]:
        config, cluster = self._run.config, self._run.config.cluster
        world, replicas = self._places()
        epoch = next(self._epochs)
        starts = [self._start(rank, world, replicas) for rank in range(world)]
        try:
            ranks = ActorRanks(starts, rank_resources(cluster), cluster.start_seconds)
        except NoRoom:
            self._most = max(1, world - 1)
            raise RankEnded(f"{world} ranks of the learner have found no room in time") from None
        except NotBegun as error:
            raise RankEnded(f"{world} ranks of the learner {error}") from None
        group = RankGroup(ranks, cluster.heartbeat_seconds)
        try:
            self._opened: Opened = group.opened()
        except BaseException:
            group.close()
            raise
        self._epoch, self._most = epoch, config.ranks
        fewer = {} if world == config.ranks else {"wanted": config.ranks}
        self._events.write("up", "learner", epoch, pids=ranks.pids, ranks=world, replicas=replicas, **fewer)
        group.ended.add_done_callback(lambda ended: self._hear_of_end(group, ended))
        return ranks, group

    def _places(self) -> tuple[int, int]:
        """How many ranks there is room for, and how many copies of the weights; waits for room for one."""
        config = self._run.config
        waited = 0.0
        while not (room := parts_that_fit(living_nodes(), [rank_resources(config.cluster)] * config.ranks)):
            if waited > config.cluster.start_seconds:
                raise RankEnded("no node is left that has room for a rank of the learner")
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            waited += _SECONDS_BETWEEN_LOOKS
        return fewer_ranks(config.ranks, config.replicas, min(room, self._most))

    def _start(self, rank: int, world: int, replicas: int) -> RankStart:
        place = RankPlace(rank, world, replicas, "", self._placement)
        return RankStart(place, self._run.config.model_dump_json(), str(self._run.directory.start.absolute()))

    def _hear_of_end(self, group: RankGroup, ended: "Future[None]") -> None:
        """Nobody may be asking anything of the learner at the moment, and a checkpoint may be waited for."""
        error = ended.exception()
        if error and not self._closed:
            why = getattr(error, "reason", str(error))
            self._events.write("lost", "learner", self._epoch, why=why)
            threading.Thread(target=self._recover, args=(group,), daemon=True, name="recovery").start()

    def _recover(self, group: RankGroup) -> None:
        with self._lock, suppress(GametapeError):
            if self._group is group and not self._closed:
                self._with_group(lambda _group: None)

    def _begin_again(self) -> None:
        """From the last checkpoint, through all that was learned since."""
        began = time.monotonic()
        self._group.close()
        self._ranks, self._group = self._begin()
        step = self._load_latest()
        entries = [entry for entry in self._journal if isinstance(entry, _Save) or entry.step >= step]
        for entry in entries:
            if isinstance(entry, _Update):
                _learn(self._group, entry)
            elif not entry.written.done():
                _save(self._group, entry)
        updates = sum(isinstance(entry, _Update) for entry in entries)
        seconds = round(time.monotonic() - began, 3)
        self._events.write("replayed", "learner", self._epoch, updates=updates, after=step, seconds=seconds)

    def _load_latest(self) -> int:
        """How many updates are in it; 0 where there is none, and the ranks are as the run began."""
        while saved := checkpoints.latest(self._run.directory.checkpoints):
            try:
                self._group.call("load", saved.absolute())
            except BadInput:
                replaced = checkpoints.latest(self._run.directory.checkpoints) != saved  # and deleted, meanwhile
                if not replaced:
                    raise
                continue
            return int(saved.name)
        return 0

    def _forget_saved(self) -> None:
        """What is in the last checkpoint need not be learned again."""
        saved = checkpoints.latest(self._run.directory.checkpoints)
        step = int(saved.name) if saved else 0
        self._journal = [
            entry
            for entry in self._journal
            if (not entry.written.done() if isinstance(entry, _Save) else entry.step >= step)
        ]


_Learned = tuple[UpdateMetrics, list[TargetMetrics], list[TokenReading]]


def _learn(group: RankGroup, entry: _Update) -> _Learned:
    answer: _Learned = group.call("update", entry.batch, entry.step, entry.version, entry.spent)
    return answer


def _save(group: RankGroup, entry: _Save) -> None:
    """Into the same directory, whatever others have begun to write there."""
    for path in entry.directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def tell(written: "Future[None]") -> None:
        """If the ranks die of it, those that follow will do it again."""
        error = written.exception()
        if isinstance(error, RankEnded) or (error and _death_of(group)):
            return
        if error is None and not (entry.directory / SHARDS).is_dir():
            error = NotWritten(
                "the driver does not see what the ranks wrote: all nodes must share the run's file system"
            )
        with suppress(InvalidStateError):
            entry.written.set_exception(error) if error else entry.written.set_result(None)

    def hear(written: "Future[None]") -> None:
        threading.Thread(target=tell, args=(written,), daemon=True, name="checkpoint").start()

    group.save(entry.directory).add_done_callback(hear)


def _death_of(group: RankGroup) -> RankEnded | None:
    """What has become of the group, where it has just told of an error: a rank that misses another one may say that it
    could not read or write, before anybody knows that the other one is gone."""
    if not wait((group.ended,), _SECONDS_TO_TELL).done:
        return None
    error = group.ended.exception()
    return error if isinstance(error, RankEnded) else None
