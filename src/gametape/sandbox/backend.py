"""The protocol of a sandbox backend, and what a caller asks of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pydantic import field_validator

from gametape.core.errors import BadInput, MissingDependency
from gametape.sandbox import workspace_files
from gametape.sandbox.policy import SandboxPolicy
from gametape.sandbox.result import BackendCapabilities, BackendProbe, ExecResult, FrozenModel
from gametape.sandbox.snapshots.overlay import MountPlan


class SandboxSpec(FrozenModel):
    """A sandbox to be started: its workspace, its policy, and the capabilities it requires."""

    policy: SandboxPolicy = SandboxPolicy()
    workspace: Path | None = None
    """A host directory, writable at /workspace inside; None gives an empty one that vanishes with the sandbox."""
    view: MountPlan | None = None
    """Instead of a directory: a view of a snapshot, private to this sandbox."""
    network_log: Path | None = None
    """Where requests to the network proxy are recorded, one JSON object to a line; see `network_record.py`."""
    requires: frozenset[str] = frozenset({"network_isolation"})
    """Capabilities without which the sandbox must not start."""

    @field_validator("requires")
    @classmethod
    def _known(cls, value: frozenset[str]) -> frozenset[str]:
        if unknown := value - set(BackendCapabilities.model_fields):
            raise ValueError(
                f"unknown capabilities {sorted(unknown)}; known: {sorted(BackendCapabilities.model_fields)}"
            )
        return value

    def needs(self) -> frozenset[str]:
        """The required capabilities, and those that the policy makes use of."""
        return self.requires | ({"network_access"} if self.policy.network_access else frozenset())


class Sandbox(Protocol):
    """Runs commands, each in a new sandbox over the same workspace."""

    def exec(self, argv: Sequence[str], stdin: bytes = b"") -> ExecResult: ...

    def put(self, path: str, content: bytes) -> None: ...

    def get(self, path: str) -> bytes: ...

    def close(self) -> None: ...


class Backend(Protocol):
    name: str

    def probe(self) -> BackendProbe: ...

    def start(self, spec: SandboxSpec) -> Sandbox: ...


class WorkspaceSandbox:
    """The files of a one-shot sandbox's workspace, and the check of its commands."""

    workspace: str | None
    """The host directory of the workspace; None if it vanishes with the sandbox."""

    def put(self, path: str, content: bytes) -> None:
        """Write a file of the workspace from outside, following no link that the command may have planted."""
        workspace_files.write_file(self._directory(), path, content)

    def get(self, path: str) -> bytes:
        return workspace_files.read_file(self._directory(), path)

    def close(self) -> None:
        """Nothing stays up between commands."""

    def _directory(self) -> str:
        if self.workspace is None:
            raise BadInput("this sandbox has no workspace directory; start it with one")
        return self.workspace

    @staticmethod
    def check_command(argv: Sequence[str]) -> None:
        if not argv or not argv[0] or any("\0" in word for word in argv):
            raise BadInput("a command needs at least one word, and none with a NUL byte")


def backends() -> dict[str, Backend]:
    """Every backend of this version, whether or not it works here."""
    from gametape.sandbox.bubblewrap import BubblewrapBackend  # noqa: PLC0415 - backends import this module
    from gametape.sandbox.docker import DockerBackend  # noqa: PLC0415
    from gametape.sandbox.oci import OciBackend  # noqa: PLC0415

    return {"bubblewrap": BubblewrapBackend(), "oci": OciBackend(), "docker": DockerBackend()}


def open_backend(name: str = "bubblewrap") -> Backend:
    known = backends()
    if name not in known:
        raise BadInput(f"unknown sandbox backend {name!r}; known: {', '.join(known)}")
    return known[name]


def require_capabilities(name: str, probe: BackendProbe, required: frozenset[str]) -> None:
    """Fail closed: raise rather than start a sandbox with less than was asked for."""
    if not probe.available:
        raise MissingDependency(f"the {name} sandbox does not work here: {'; '.join(probe.missing)}")
    if lacking := probe.capabilities.missing(required):
        reasons = "; ".join(probe.missing) or "this backend does not have it"
        raise MissingDependency(f"the {name} sandbox cannot give {', '.join(lacking)} here: {reasons}")
