"""The program of a `VerifierPool`'s processes: it verifies one workspace after the other, and ends with its parent.

python -m gametape.verify.verifier_process FD HOME
"""

import signal
import sys
from collections import OrderedDict
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from gametape.core.errors import GametapeError
from gametape.core.verdict import Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.record.parent_watch import end_with_peer
from gametape.sandbox.keeper_client import SandboxError
from gametape.verify.layers.profiles import Profile
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.reward import RewardKind
from gametape.verify.runner import ZygotePool
from gametape.verify.verifier import Verifier

MAX_TASKS = 64
"""Tasks whose verifier stays prepared in one process; the one used longest ago is closed."""


@dataclass(frozen=True)
class VerifyRequest:
    digest: str
    task: LoadedTask | None
    """None for a task that this process has been given before."""
    workspace: Path | None
    """None to prepare the task, which takes longer than most verdicts."""
    profile: Profile = "train"
    kind: RewardKind = "layered"


@dataclass(frozen=True)
class Preparation:
    """A task is prepared."""

    made: bool
    """By this process just now; else what another one had made was read."""


@dataclass(frozen=True)
class VerifyFailure:
    """Why there is no verdict. `infrastructure`: it says nothing about the workspace."""

    reason: str
    infrastructure: bool


class _Verifiers:
    """Prepared verifiers by the digest of their task."""

    def __init__(self, home: Path, zygotes: ZygotePool, sandboxes: ReplaySandboxes) -> None:
        self._home, self._zygotes, self._sandboxes = home, zygotes, sandboxes
        self._by_digest: OrderedDict[str, Verifier] = OrderedDict()

    def find(self, request: VerifyRequest) -> Verifier:
        if request.task is not None and request.digest not in self._by_digest:
            self._by_digest[request.digest] = Verifier(
                request.task, self._home, self._zygotes, sandboxes=self._sandboxes
            )
            if len(self._by_digest) > MAX_TASKS:
                self._by_digest.popitem(last=False)[1].close()
        self._by_digest.move_to_end(request.digest)
        return self._by_digest[request.digest]

    def close(self) -> None:
        for verifier in self._by_digest.values():
            verifier.close()


def _answer(verifiers: _Verifiers, request: VerifyRequest) -> Verdict | VerifyFailure | Preparation:
    try:
        verifier = verifiers.find(request)
        if request.workspace is None:
            return Preparation(made=not verifier.prepared().from_disk)
        return verifier.verify(request.workspace, request.profile, request.kind)
    except GametapeError as error:
        return VerifyFailure(str(error), isinstance(error, SandboxError))
    except OSError as error:  # of the machine, and not of the connection, which would end this process without a word
        return VerifyFailure(f"{type(error).__name__}: {error}", infrastructure=True)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes this process
    connection, home = Connection(int(sys.argv[1])), Path(sys.argv[2])
    told_to_end = end_with_peer(connection.fileno())
    with ZygotePool(size=1) as zygotes, ReplaySandboxes() as sandboxes:
        verifiers = _Verifiers(home, zygotes, sandboxes)
        try:
            while (request := connection.recv()) is not None:
                connection.send(_answer(verifiers, request))
        except (EOFError, OSError):
            pass  # the parent is gone
        else:
            told_to_end.set()
        finally:
            verifiers.close()


if __name__ == "__main__":
    from gametape.verify.verifier_process import main as run_verifier

    run_verifier()  # under the module's own name, by which the other side knows the classes of its answers
