from pathlib import Path

import pytest
from pydantic import ValidationError

from gametape.sandbox.policy import SandboxLimits, SandboxPolicy


def test_the_hash_follows_every_field() -> None:
    changed = [
        SandboxPolicy(network="loopback"),
        SandboxPolicy(read_only=("/opt",)),
        SandboxPolicy(writable=("/opt",)),
        SandboxPolicy(hidden=("/opt",)),
        SandboxPolicy(environment=(("A", "b"),)),
        SandboxPolicy(limits=SandboxLimits(memory_mb=100)),
        SandboxPolicy(on_violation="kill"),
        SandboxPolicy(watched=("/root",)),
        SandboxPolicy(audited=(".git",)),
        SandboxPolicy(denied_syscalls=("ioctl",)),
        SandboxPolicy(socket_families=()),
        SandboxPolicy(python=False),
        SandboxPolicy(max_violations=3),
        SandboxPolicy(trace_files="opened"),
        SandboxPolicy(trace_files="all"),
    ]
    assert len({policy.hash for policy in [SandboxPolicy(), *changed]}) == len(changed) + 1
    assert SandboxPolicy().hash == SandboxPolicy().hash


def test_the_hash_does_not_depend_on_names_in_the_code() -> None:
    """Recorded verdicts name it. A change here is a change of the policy, and belongs into the changelog."""
    assert SandboxPolicy().hash == "012e9acd789707d71c3672e7115d2b93"


def test_an_environment_can_be_a_table_and_its_order_does_not_matter() -> None:
    one = SandboxPolicy.model_validate({"environment": {"B": "2", "A": "1"}})
    assert one.hash == SandboxPolicy.model_validate({"environment": {"A": "1", "B": "2"}}).hash
    assert hash(one) == hash(SandboxPolicy.model_validate({"environment": {"A": "1", "B": "2"}}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"read_only": ["relative"]},
        {"read_only": ["/"]},
        {"writable": ["//"]},
        {"hidden": ["relative"]},
        {"hidden": ["/"]},
        {"environment": {"A=B": "c"}},
        {"environment": {"A": "b\0c"}},
        {"socket_families": ["AF_VSOCK"]},
        {"socket_families": ["AF_NETLINK"]},
        {"denied_syscalls": ["no_such_call"]},
        {"denied_syscalls": ["execve"]},
        {"network": "host"},
        {"audited": ["a/b"]},
        {"audited": ["*"]},
        {"audited": ["a*b"]},
        {"limits": {"memory_mb": 0}},
        {"limits": {"wall_seconds": -1}},
        {"unknown": 1},
        {"version": 2},
    ],
)
def test_what_cannot_be_granted_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SandboxPolicy.model_validate(wrong)


def test_with_limits_replaces_only_what_is_given() -> None:
    policy = SandboxPolicy(limits=SandboxLimits(memory_mb=50)).with_limits(wall_seconds=2.5, cpu_seconds=None)
    assert (policy.limits.memory_mb, policy.limits.wall_seconds, policy.limits.cpu_seconds) == (50, 2.5, None)


def test_a_policy_can_be_read_back_from_what_it_writes(tmp_path: Path) -> None:
    policy = SandboxPolicy(environment=(("A", "b"),), limits=SandboxLimits(cpu_seconds=3), read_only=("/opt",))
    assert SandboxPolicy.model_validate_json(policy.model_dump_json()) == policy
