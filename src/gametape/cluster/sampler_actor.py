"""A sampler as an actor: the process beside the learner of `rl.asynchronous`, on any node of a cluster."""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from ray.exceptions import RayError

from gametape.cluster.mailbox import Mailbox
from gametape.cluster.stored_weights import WeightsDamaged
from gametape.core.config import RunConfig
from gametape.train.rollouts import Weights
from gametape.train.sampler import run_sampler
from gametape.train.sampler_messages import SamplerAnswer, SamplerOrder, WeightsReady


@dataclass(frozen=True)
class SamplerStart:
    """What a sampler begins with. Both directories are the same for all nodes."""

    config: str
    start: str
    home: str


class SamplerActor:
    """One call of it tells, another one asks; a thread of its own samples."""

    def __init__(self, start: SamplerStart) -> None:
        self._mailbox = Mailbox()
        self._link = _MailboxLink(self._mailbox)
        threading.Thread(target=self._run, args=(start,), daemon=True, name="sampler").start()

    def tell(self, orders: Sequence[SamplerOrder | None]) -> None:
        self._link.newest = max([self._link.newest, *(one.version for one in orders if isinstance(one, WeightsReady))])
        self._mailbox.tell(orders)

    def poll(self, seconds: float) -> list[SamplerAnswer]:
        return self._mailbox.poll(seconds)

    def identity(self) -> tuple[int, str]:
        """Its process, and the machine whose clock it reads."""
        return os.getpid(), machine()

    def _run(self, start: SamplerStart) -> None:
        config = RunConfig.model_validate_json(start.config)
        torch.set_num_threads(max(1, int(config.cluster.sampler_cpus)))
        run_sampler(self._link, config, Path(start.start), Path(start.home))


class _MailboxLink:
    """The sampler's end."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self.newest = 0
        """The latest version of the weights that is there to be read."""

    def receive(self) -> SamplerOrder | None:
        """Weights are fetched here, beside what is being sampled. Those that newer ones follow are passed over, and
        those that are gone with their node: the learner will publish others."""
        while isinstance(order := self._mailbox.receive(), WeightsReady):
            if order.version == self.newest and (fetched := _fetched(order)):
                return fetched
        sent: SamplerOrder | None = order
        return sent

    def send(self, answer: SamplerAnswer) -> None:
        """Where the weights lay is of no use to the other side."""
        self._mailbox.send(WeightsReady(answer.version, None) if isinstance(answer, WeightsReady) else answer)

    def read_weights(self, ready: WeightsReady) -> Weights:
        if isinstance(ready.place, WeightsDamaged):
            raise ready.place
        weights: Weights = ready.place
        return weights


def _fetched(ready: WeightsReady) -> WeightsReady | None:
    try:
        return replace(ready, place=ready.place.read())
    except WeightsDamaged as error:
        return replace(ready, place=error)
    except RayError:
        return None


def machine() -> str:
    """The same for all processes that share a monotonic clock."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return os.uname().nodename


def shifted(value: Any, seconds: float) -> Any:
    """Intervals by another machine's clock, as they are by this one's."""
    return {kind: [(begun + seconds, ended + seconds) for begun, ended in spans] for kind, spans in value.items()}
