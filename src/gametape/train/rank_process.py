"""One rank of a learner in a process of its own: it does what it is told through a pipe, as all others do at the same
time. It ends when the process that started it does, however that ends."""

import os
import queue
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.core.seeds import seed_for
from gametape.train.algorithms import make_algorithm
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.learner import LocalLearner
from gametape.train.policy import load_policy
from gametape.train.rank_messages import Alive, Answer, Failed, Message, RankCall, Saved, receive, send
from gametape.train.rollouts import TargetMetrics, TokenReading, Weights
from gametape.train.shards import RankPlace, join_ranks, open_ranks
from gametape.train.update_metrics import UpdateMetrics

_SECONDS_BETWEEN_SIGNS = 1.0


@dataclass(frozen=True)
class RankStart:
    """What a rank begins with."""

    place: RankPlace
    config: str
    start: str
    log: str = ""
    """Where what it would print goes."""
    buffers: Mapping[str, Tensor] | None = None
    """Memory that the first rank shares with the process that samples. Without it weights are what it answers."""


@dataclass(frozen=True)
class Opened:
    """What a rank says of its learner when it is ready."""

    parameters: int
    device: str


def rank_main(pipe: Connection, start: RankStart) -> None:
    """The main function of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    _print_into(Path(start.log))
    run_rank(_PipeEnd(pipe, Path(start.place.store).parent), start)
    sys.stderr.flush()
    os._exit(0)  # what is left are threads of libraries, which would wait for other ranks


class RankLink(Protocol):
    """What carries calls to a rank and its answers back."""

    def receive(self) -> RankCall | None:
        """Wait for the next call; None ends the rank."""
        ...

    def send(self, message: Message) -> None: ...


def run_rank(link: RankLink, start: RankStart) -> None:
    """Obey until the link says that it is over. What goes wrong is told through the link."""
    try:
        rank = _Rank(start, link.send)
        link.send(Answer(rank.opened))
        while (call := link.receive()) is not None:
            link.send(rank.obey(call))
    except GametapeError as error:
        link.send(Answer(error=error))
        link.receive()
    except BaseException as error:
        link.send(Failed(" ".join(f"{type(error).__name__}: {error}".split())[:300]))
        raise


class _PipeEnd:
    """A `RankLink` over a pipe, with a thread that listens and one that shows signs of life."""

    def __init__(self, pipe: Connection, scratch: Path) -> None:
        self._pipe, self._scratch = pipe, scratch
        self._lock = threading.Lock()
        self._calls: queue.Queue[RankCall | None] = queue.Queue()
        for work in (self._listen, self._show_life):
            threading.Thread(target=work, daemon=True).start()

    def receive(self) -> RankCall | None:
        return self._calls.get()

    def send(self, message: Message) -> None:
        with suppress(OSError), self._lock:  # the listener notices that nobody is there
            send(self._pipe, message)

    def _listen(self) -> None:
        """The end of the pipe is the end of the other process, whatever this one is doing."""
        try:
            while True:
                self._calls.put(receive(self._pipe))
        except (EOFError, OSError):
            shutil.rmtree(self._scratch, ignore_errors=True)
            os._exit(1)

    def _show_life(self) -> None:
        while True:
            self.send(Alive())
            time.sleep(_SECONDS_BETWEEN_SIGNS)


class _Rank:
    """A learner that is one of several."""

    def __init__(self, start: RankStart, say: Callable[[Message], None]) -> None:
        config, place = RunConfig.model_validate_json(start.config), start.place
        if place.placement.device == "cpu":
            torch.set_num_threads(max(1, (os.cpu_count() or 1) // place.world))
        self._first, self._buffers, self._say = place.rank == 0, start.buffers, say
        policy = load_policy(Path(start.start), place.placement)
        policy.adapt(config.lora, seed_for(config.seed, "adapters"))
        ranks = join_ranks(place) if place.world > 1 or start.buffers is not None else open_ranks(place.placement)
        self._learner = LocalLearner(policy, config, make_algorithm(config), ranks)
        self.opened = Opened(self._learner.parameters, self._learner.device)

    def obey(self, call: RankCall) -> Answer:
        """What only the first rank has to tell comes from it alone. An error that a person can act on is told; all
        ranks have it, and go on."""
        try:
            value = getattr(self, f"_{call.method}")(*call.arguments)
        except GametapeError as error:
            return Answer(error=error)
        return Answer(value if self._first else None)

    def _update(
        self, batch: TrainBatch, step: int, version: int, spent: float
    ) -> tuple[UpdateMetrics, list[TargetMetrics], list[TokenReading]]:
        update, algorithm = self._learner.update(batch, step, version, spent), self._learner.algorithm
        return update, algorithm.target_metrics, algorithm.token_readings

    def _score(self, samples: list[TrainSample]) -> list[Tensor]:
        return self._learner.score(samples)

    def _publish(self) -> Weights:
        """Every rank helps to gather them; only the first one keeps each."""
        own: dict[str, Tensor] = {}
        for name, tensor in self._learner.policy.each_weight():
            if self._first and self._buffers:
                self._buffers[name].copy_(tensor.detach())
            elif self._first:
                own[name] = tensor.detach().to("cpu", self._learner.policy.placement.torch_dtype, copy=True)
        return own

    def _save(self, directory: Path) -> None:
        self._learner.save(directory).add_done_callback(self._say_saved)

    def _load(self, directory: Path) -> None:
        self._learner.load(directory)

    def _say_saved(self, written: "Future[Any]") -> None:
        error = written.exception()
        if error is None or isinstance(error, GametapeError):
            self._say(Saved(error))
        else:
            self._say(Failed(f"{type(error).__name__}: {error}"))


def _print_into(log: Path) -> None:
    """What libraries print would run through the run's own output."""
    fd = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)
    for stream in (1, 2):
        os.dup2(fd, stream)
    os.close(fd)
