"""What the process that trains and the processes of its learner say to each other. Everything is pickled by value."""

import pickle
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from gametape.core.errors import GametapeError


@dataclass(frozen=True)
class RankCall:
    """Every rank is to do this. None of them answers before it is done."""

    method: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Alive:
    """A rank that has said nothing else for a second says this."""


@dataclass(frozen=True)
class Answer:
    """A rank has done what it was asked to, or it could not, and goes on all the same."""

    value: Any = None
    error: GametapeError | None = None


@dataclass(frozen=True)
class Saved:
    """What a rank had to write of a checkpoint is written, or could not be."""

    error: GametapeError | None = None


@dataclass(frozen=True)
class Failed:
    """A rank ends, for this reason."""

    reason: str
    time: float = field(default_factory=time.monotonic)
    """By the machine's clock, to tell what came first."""


Message = Alive | Answer | Saved | Failed


def send(pipe: Connection, message: RankCall | Message | None) -> None:
    """Tensors go as bytes: by the default of their pipes they would go through files of their own."""
    pipe.send_bytes(pickle.dumps(message))


def receive(pipe: Connection) -> Any:
    return pickle.loads(pipe.recv_bytes())
