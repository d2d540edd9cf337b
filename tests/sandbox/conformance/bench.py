"""The workbench of the conformance suite: a backend under test, and the list of promises.

Plain asserts, so that any user can run them without pytest: `test_conformance.py` runs them here, `runner.py` as an
ordinary user.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gametape.sandbox.backend import Backend, SandboxSpec
from gametape.sandbox.bubblewrap import BubblewrapBackend
from gametape.sandbox.docker import DockerBackend
from gametape.sandbox.oci import OciBackend
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.result import BackendCapabilities, ExecResult
from tests.patience import HANG

BACKENDS: dict[str, Callable[[], Backend]] = {
    "bubblewrap": BubblewrapBackend,
    "oci-runc": lambda: OciBackend("runc"),
    "oci-crun": lambda: OciBackend("crun"),
    "docker": DockerBackend,
}

SMALL = SandboxLimits(wall_seconds=HANG, memory_mb=200, processes=40, disk_mb=40, output_bytes=100_000)


@dataclass
class Bench:
    """A backend under test, and a directory of the host's to work in."""

    name: str
    place: Path

    @property
    def backend(self) -> Backend:
        return BACKENDS[self.name]()

    @property
    def capabilities(self) -> BackendCapabilities:
        return self.backend.probe().capabilities

    def directory(self, name: str, mode: int = 0o755) -> Path:
        made = self.place / name
        made.mkdir(mode=mode)
        if self.name == "docker" and os.geteuid() == 0:
            os.chown(made, 1000, 1000)  # docker runs a command as the owner of its workspace, and never as root
        return made

    def run(
        self, *argv: str, workspace: Path | None = None, policy: SandboxPolicy | None = None, stdin: bytes = b""
    ) -> ExecResult:
        return self.backend.start(SandboxSpec(policy=policy or SandboxPolicy(), workspace=workspace)).exec(argv, stdin)

    def python(self, code: str, workspace: Path | None = None, **policy: object) -> ExecResult:
        return self.run("python3", "-c", code, workspace=workspace, policy=SandboxPolicy(**policy))  # type: ignore[arg-type]


Case = Callable[[Bench], None]
CASES: dict[str, Case] = {}


def promise(case: Case) -> Case:
    CASES[case.__name__] = case
    return case


@contextmanager
def raises(kind: type[Exception], text: str = "") -> Iterator[None]:
    try:
        yield
    except kind as error:
        if text in str(error):
            return
        raise
    raise AssertionError(f"{kind.__name__} was not raised")
