"""The hosts that an agent may reach: in its sandbox, in its prompt, and in what is said about its work.

Only the agent's own sandbox gets them. The verifier and the judge of a goal make theirs elsewhere, without hosts.
"""

from collections.abc import Sequence
from pathlib import Path

from gametape.core.atif import Extra
from gametape.core.errors import BadInput
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.network_policy import HostRule
from gametape.sandbox.network_record import count_requests


def check_hosts(hosts: Sequence[str]) -> tuple[str, ...]:
    """The hosts, each once; `BadInput` for one that cannot be allowed."""
    for host in hosts:
        try:
            HostRule.parse(host)
        except ValueError as error:
            raise BadInput(str(error)) from None
    return tuple(dict.fromkeys(hosts))


def allow_hosts(spec: SandboxSpec, hosts: Sequence[str], log: Path) -> SandboxSpec:
    """The same sandbox with these hosts in reach, and every request written to `log`."""
    if not hosts:
        return spec
    return spec.model_copy(update={"policy": spec.policy.with_hosts(hosts), "network_log": log})


def network_summary(hosts: Sequence[str], log: Path) -> Extra:
    """For an answer or a record: the hosts that were allowed, and what was asked of the network."""
    if not hosts:
        return {}
    requests, refused = count_requests(log)
    return {"network": {"hosts": list(hosts), "requests": requests, "refused": refused, "log": str(log.absolute())}}
