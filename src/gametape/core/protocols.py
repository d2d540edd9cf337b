"""The seams: what a tool, an environment, an engine and notes must do, wherever they run.

Whatever may wait is asynchronous, and nothing assumes that two sides share memory: on a cluster the same
objects become actors.
"""

from collections.abc import Sequence
from typing import Any, Protocol, Self

from gametape.core.messages import CommandResult, GenerateRequest, Generation, ToolResult, WeightUpdate


class ShellResult(Protocol):
    """What came of a command in an environment's shell, which lives on."""

    @property
    def exit_code(self) -> int: ...

    @property
    def stdout(self) -> str: ...

    @property
    def stderr(self) -> str: ...

    @property
    def killed_by(self) -> str | None: ...

    @property
    def directory(self) -> str:
        """Where the shell is now."""
        ...

    @property
    def shell_restarted(self) -> bool: ...

    @property
    def cpu_seconds(self) -> float: ...


class Workspace(Protocol):
    """A workspace in which hostile code may run, with a past that can be returned to."""

    async def shell(self, command: str, wall_seconds: float | None = None) -> ShellResult:
        """Run a command in the environment's one shell: directory and variables stay for the next."""
        ...

    async def run(self, argv: Sequence[str], *, timeout: float) -> CommandResult: ...

    async def put(self, path: str, content: bytes) -> None: ...

    async def get(self, path: str) -> bytes: ...

    async def snapshot(self) -> str:
        """Save the file tree and name what was saved."""
        ...

    async def restore(self, snapshot: str) -> None: ...

    async def fork(self, snapshot: str) -> Self:
        """A new environment that starts from a snapshot; this one is not touched."""
        ...

    async def close(self) -> None: ...


class Tool(Protocol):
    """Something the agent may call. `definition` is what the model is told, as a JSON schema."""

    @property
    def name(self) -> str: ...

    @property
    def definition(self) -> dict[str, Any]: ...

    async def call(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        """Bad arguments are answered with what was wrong, never raised."""
        ...


class PolicyEngine(Protocol):
    """Where tokens come from."""

    async def generate(self, request: GenerateRequest) -> Generation: ...

    async def update_weights(self, update: WeightUpdate) -> None:
        """Returns once every token sampled from now on comes from these weights or newer ones."""
        ...

    async def policy_version(self) -> int: ...


class NoteStore(Protocol):
    """The agent's memory: a scratch file in training, the vault in a thread."""

    async def names(self) -> list[str]: ...

    async def read(self, name: str) -> str | None: ...

    async def write(self, name: str, text: str) -> None: ...
