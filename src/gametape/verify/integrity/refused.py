"""A rule over what the sandbox itself refused: the kernel's word, whoever made the call and however it was spelled."""

from collections.abc import Iterator, Sequence

from gametape.verify.attempt import Attempt
from gametape.verify.integrity.rule import Finding, over_runs
from gametape.verify.observation import Run

_OUTSIDE = frozenset(("AF_INET", "AF_INET6", "AF_VSOCK", "AF_PACKET", "AF_BLUETOOTH", "AF_XDP"))


@over_runs(
    "network.refused",
    "suspect",
    "a process of the attempt asked for a way out of the sandbox",
    "only sockets that lead outside the machine's own processes, and only where the reference's runs ask for none",
)
def refused(_attempt: Attempt, runs: Sequence[Run]) -> Iterator[Finding]:
    families = {
        str(violation.args[0])
        for run in runs
        for violation in run.violations
        if violation.syscall == "socket" and violation.action != "logged" and violation.args
    }
    for family in sorted(families & _OUTSIDE):
        yield Finding(f"socket of family {family}")
