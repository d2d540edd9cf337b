"""Environments without files: the whole state is one Python object that tools change and a method scores."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NoReturn, Self, TypeVar

from gametape.core.environment import EpisodeScore
from gametape.core.errors import BadInput
from gametape.core.messages import CommandResult
from gametape.core.protocols import ShellResult, Tool, Workspace

State = TypeVar("State")


class StateWorkspace(Generic[State]):
    """A `Workspace` that holds an object in memory. A snapshot is a deep copy of it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._snapshots: list[State] = []

    async def snapshot(self) -> str:
        self._snapshots.append(copy.deepcopy(self.state))
        return str(len(self._snapshots) - 1)

    async def restore(self, snapshot: str) -> None:
        self.state = copy.deepcopy(self._saved(snapshot))

    async def fork(self, snapshot: str) -> Self:
        other = type(self)(copy.deepcopy(self._saved(snapshot)))
        other._snapshots = self._snapshots[: int(snapshot) + 1]
        return other

    async def close(self) -> None:
        self._snapshots.clear()

    async def get(self, path: str) -> bytes:  # noqa: ARG002
        _refuse()

    async def put(self, path: str, content: bytes) -> None:  # noqa: ARG002
        _refuse()

    async def shell(self, command: str, wall_seconds: float | None = None) -> ShellResult:  # noqa: ARG002
        _refuse()

    async def run(self, argv: Sequence[str], *, timeout: float) -> CommandResult:  # noqa: ARG002
        _refuse()

    def _saved(self, snapshot: str) -> State:
        if not snapshot.isdecimal() or int(snapshot) >= len(self._snapshots):
            raise BadInput(f"no snapshot {snapshot[:80]!r}")
        return self._snapshots[int(snapshot)]


class StateEnvironment(ABC, Generic[State]):
    """Base class of an environment in memory. A subclass says what an episode starts with, which tools there are and
    what the final state is worth; everything else has a default."""

    name: str
    """The same for the same prompt, in any process."""
    user_prompt: str
    """What the policy reads first."""
    system_prompt: str = ""
    max_turns: int = 8

    @property
    def bucket(self) -> str:
        """Prompts of one bucket are counted together when training decides what is still worth practising."""
        return type(self).__name__

    @abstractmethod
    def initial_state(self) -> State:
        """A new object for each episode."""

    @abstractmethod
    def tools(self) -> Sequence[Tool]: ...

    @abstractmethod
    def score_state(self, state: State) -> float | EpisodeScore:
        """The reward of an episode that ended in this state. A plain number of 1 or more counts as passed."""

    async def reset(self) -> Workspace:
        return StateWorkspace(self.initial_state())

    async def score(self, workspace: Workspace) -> EpisodeScore:
        if not isinstance(workspace, StateWorkspace):
            raise BadInput(f"{self.name}: scores its own workspaces only")
        state: Any = workspace.state
        score = self.score_state(state)
        return score if isinstance(score, EpisodeScore) else EpisodeScore(passed=score >= 1, reward=float(score))


def _refuse() -> NoReturn:
    raise BadInput("this environment has no files and no shell; use its tools")
