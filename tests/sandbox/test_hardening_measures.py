"""Each hardening measure does something: what it stops gets through when it is taken away.

Where another layer would hide the difference, that layer is off in both runs.
"""

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from gametape.sandbox.bubblewrap import BubblewrapBackend
from gametape.sandbox.hardening_measures import HARDENING_MEASURES
from tests.sandbox.escape import PROBES
from tests.sandbox.escape.probe import ROOT, Probe
from tests.sandbox.escape.run import Trial, attempt, complaints, explain
from tests.sandbox.escape.stage import Stage

AS_ROOT = os.geteuid() == 0
FILTER = frozenset({"call-filter"})


@dataclass(frozen=True)
class Demonstration:
    """An attempt that the measure stops, with the other layers that must be out of the way to see it."""

    body: str
    beside: frozenset[str] = frozenset()
    policy: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    needs_root: bool = False


DEMONSTRATIONS = {
    "drop-user": Demonstration('open(G["secret_file"]).read()', policy={"read_only": ("{outside}",)}, needs_root=True),
    "empty-environment": Demonstration(
        'need(G["secret"].encode() in open("/proc/1/environ", "rb").read(), "not there")', beside=FILTER
    ),
    "hidden-options": Demonstration(
        "need(b'--un' + b'share-net' in open('/proc/1/cmdline', 'rb').read(), 'not there')"
    ),
    "own-users": Demonstration(
        'call("mount", NONCE, "/tmp", "tmpfs", 0, 0)', beside=ROOT - {"own-users"}, needs_root=True
    ),
    "no-nested-users": Demonstration('call("unshare", 0x10000000)', beside=FILTER),
    "own-processes": Demonstration("""os.stat(f'/proc/{G["victim"]}')"""),
    "own-network": Demonstration("""socket.socket(socket.AF_UNIX).connect(chr(0) + G["abstract"])"""),
    "own-ipc": Demonstration("need(libc.shmget(G['shm_key'], 4096, 0) >= 0, 'none')".replace("'shm_key'", '"shm_key"')),
    "own-host-name": Demonstration('need(os.uname().nodename == G["host_name"], "another")'),
    "own-cgroup-view": Demonstration(
        "need(any(line.split(':', 2)[2].strip() != '/' for line in open('/proc/self/cgroup')), 'its own view')"
    ),
    "no-capabilities": Demonstration(
        "need([line for line in open('/proc/self/status') if 'CapEff' in line and int(line.split()[1], 16)], 'none')",
        beside=ROOT - {"no-capabilities"},
        needs_root=True,
    ),
    "new-session": Demonstration("need(os.getsid(0) == 0, 'a session of its own')"),
    "die-with-parent": Demonstration(
        "word = ctypes.c_int(); libc.prctl(2, ctypes.byref(word)); need(word.value != 9, 'dies with its parent')"
    ),
    "sealed-first-process": Demonstration("os.close(os.open('/proc/1/mem', os.O_RDWR))", beside=FILTER),
    "sealed-root": Demonstration("open('/' + NONCE, 'w')"),
    "sized-memory-disks": Demonstration(
        "status = os.statvfs('/tmp'); need(status.f_blocks * status.f_frsize > 256 << 20, 'small')",
        limits={"disk_mb": 16},
    ),
    "own-accounts": Demonstration('need(len(open("/etc/passwd").readlines()) > 2, "a list of two")'),
    "call-filter": Demonstration('call("keyctl", 1, 0)'),
    "no-core-dumps": Demonstration(
        "import resource; need(resource.getrlimit(resource.RLIMIT_CORE)[1] not in (0, 1), 'no core files')"
    ),
    "control-group": Demonstration(
        "need('gametape' not in open('/proc/self/cgroup').read(), 'in a group of its own')",
        beside=frozenset({"own-cgroup-view"}),
    ),
    "resource-limits": Demonstration(
        "held = [os.open('/dev/null', os.O_RDONLY) for _ in range(200)]", limits={"open_files": 64}
    ),
    "masked-sockets": Demonstration("socket.socket(socket.AF_UNIX).connect('/workspace/stream.sock')"),
}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    planted = Stage()
    yield planted
    planted.close()


def _try(stage: Stage, shown: Demonstration, without: frozenset[str]) -> Trial:
    probe = Probe("demonstration", "hardening", shown.body, limits=shown.limits, granted=shown.policy)
    backend = BubblewrapBackend()
    return attempt(probe, stage, lambda spec: backend.start(spec, without=without), weaker=True)


@pytest.mark.parametrize("measure", HARDENING_MEASURES)
def test_measure_matters(measure: str, stage: Stage) -> None:
    assert measure in DEMONSTRATIONS, f"{measure} is in the table of measures but nothing shows what it is for"
    shown = DEMONSTRATIONS[measure]
    if shown.needs_root and not AS_ROOT:
        pytest.skip("only a root host has this to lose")
    if measure == "no-core-dumps" and resource.getrlimit(resource.RLIMIT_CORE)[1] in (0, 1):
        pytest.skip("this host allows no core files anyway")
    if measure == "control-group" and BubblewrapBackend().probe().capabilities.cgroup is None:
        pytest.skip("no writable control group here")
    held = _try(stage, shown, shown.beside)
    assert "blocked: " in held.result.stdout, explain(held)
    open_ = _try(stage, shown, shown.beside | {measure})
    assert open_.escaped, explain(open_)


def test_no_demonstration_is_left_over() -> None:
    assert set(DEMONSTRATIONS) == set(HARDENING_MEASURES)


@pytest.mark.skipif(not AS_ROOT, reason="only a root host can read /etc/shadow")
def test_root_reads_shadow_unless_the_user_is_dropped(stage: Stage) -> None:
    shown = Demonstration("open('/etc/shadow', 'rb').read(1)", policy={"read_only": ("/etc",)})
    assert not _try(stage, shown, frozenset({"own-accounts"})).escaped
    assert _try(stage, shown, frozenset({"own-accounts", "drop-user"})).escaped


def test_vsock_ignores_network_namespaces_so_the_filter_must_not(stage: Stage) -> None:
    shown = Demonstration('reach("socket", 40, 1, 0)')
    held, open_ = _try(stage, shown, frozenset()), _try(stage, shown, FILTER)
    assert "blocked: " in held.result.stdout
    assert [entry.args[0] for entry in held.result.violations] == ["AF_VSOCK"]
    assert open_.escaped, "a network of its own does not stop it"


def test_nested_users_are_stopped_twice(stage: Stage) -> None:
    shown = Demonstration('call("unshare", 0x10000000)')
    assert not _try(stage, shown, frozenset({"no-nested-users"})).escaped
    assert not _try(stage, shown, FILTER).escaped
    assert _try(stage, shown, FILTER | {"no-nested-users"}).escaped


def test_the_filter_and_the_namespace_each_keep_the_host_network_away(stage: Stage) -> None:
    shown = Demonstration('socket.create_connection(("127.0.0.1", G["tcp"]), 5)')
    assert not _try(stage, shown, frozenset({"own-network"})).escaped
    assert not _try(stage, shown, FILTER).escaped
    assert _try(stage, shown, FILTER | {"own-network"}).escaped


_HELD = {"memory": "memory", "processes": "processes", "cpu": "cpu"}
_WITHOUT_GROUPS = [
    probe
    for probe in PROBES
    if probe.family == "resources" and probe.killed_by in _HELD and probe.unprivileged and not probe.slow
]


@pytest.mark.parametrize("probe", _WITHOUT_GROUPS, ids=lambda probe: probe.name)
def test_limits_hold_without_control_groups(probe: Probe, stage: Stage) -> None:
    """The fallback is slower to see, but sees the same, and the result says who held what."""
    backend = BubblewrapBackend()
    trial = attempt(probe, stage, lambda spec: backend.start(spec, without=frozenset({"control-group"})))
    assert not complaints(trial, events=True), explain(trial)
    held_by = trial.result.held_by
    assert held_by["memory"] == held_by["cpu"] == "watching"
    assert held_by["processes"] in ("watching", "rlimit")
    assert trial.result.assurance == "reduced"
