"""The OCI backend's own affairs: what the runtime is asked for, which runtime it is, and what cannot be taken away."""

import json
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput, MissingDependency
from gametape.sandbox import oci_config
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.hardening_measures import ALL_MEASURES
from gametape.sandbox.mounts import MaskedPath, Mount
from gametape.sandbox.oci import OCI_RUNTIMES, RUNTIME_VARIABLE, OciBackend, OciSandbox
from gametape.sandbox.policy import PythonRules, SandboxLimits, SandboxPolicy
from gametape.sandbox.result import ExecResult
from gametape.sandbox.session import ShellSession

LIVE = [name for name in ("runc", "crun") if OCI_RUNTIMES[name].program]


def document(argv: list[str], **changes: Any) -> dict[str, Any]:
    inside = {
        "measures": ALL_MEASURES,
        "granted": [Mount("/usr", "/usr"), Mount("/srv/w", "/workspace", writable=True)],
        "staged_paths": {Mount("/srv/w", "/workspace", writable=True): "/mnt/0"},
        "hidden": [],
        "empty": "/mnt/1/empty",
        "masked": ["/workspace/server.sock"],
        "files": {"/etc/passwd": "agent"},
        "links": [("usr/bin", "/bin")],
        "environment": {"A": "b"},
        "temporary_megabytes": 5,
        "limits": {"NOFILE": (64, 64), "FSIZE": (1 << 20, 1 << 20), "CPU": (2, 3)},
        "own_workspace": False,
        "audited": False,
        "own_kernel": False,
    }
    return oci_config.bundle_config(argv, oci_config.BundleSpec(**{**inside, **changes}))


def options(config: dict[str, Any], target: str) -> list[str]:
    (found,) = [mount["options"] for mount in config["mounts"] if mount["destination"] == target]
    return list(found)


def test_the_runtime_is_asked_for_everything_that_is_walled_off() -> None:
    config = document(["true"])
    kinds = {entry["type"] for entry in config["linux"]["namespaces"]}
    assert kinds == {"pid", "mount", "network", "ipc", "uts", "cgroup"}  # the user namespace is the keeper's
    assert config["root"] == {"path": "rootfs", "readonly": True}
    assert config["process"]["noNewPrivileges"]
    assert config["process"]["env"] == []
    assert not config["process"]["terminal"]
    assert "resources" not in config["linux"]
    assert "cgroupsPath" not in config["linux"]
    assert "/workspace/server.sock" in config["linux"]["maskedPaths"]
    assert "/proc/sys" in config["linux"]["readonlyPaths"]


def test_mounts_are_closed_as_far_as_they_can_be() -> None:
    config = document(["true"])
    assert {"ro", "rro", "nosuid", "nodev"} <= set(options(config, "/usr"))
    assert {"rw", "nosuid", "nodev"} <= set(options(config, "/workspace"))
    assert {"ro", "nosuid"} <= set(options(config, "/dev"))
    assert all("size=5m" in options(config, path) for path in ("/tmp", "/dev/shm", "/tmp/home"))
    (workspace,) = [mount for mount in config["mounts"] if mount["destination"] == "/workspace"]
    assert workspace["source"] == "/mnt/0"
    assert not [mount for mount in config["mounts"] if mount["type"] in ("cgroup", "sysfs")]


def test_covers_lie_over_what_they_hide_and_below_what_is_granted() -> None:
    granted = [Mount("/usr", "/usr"), Mount("/usr/a/b", "/usr/a/b"), Mount("/srv/w", "/workspace", writable=True)]
    hidden = [MaskedPath("/usr/a", directory=True), MaskedPath("/usr/b", directory=False)]
    config = document(["true"], granted=granted, hidden=hidden)
    targets = [mount["destination"] for mount in config["mounts"]]
    assert [path for path in targets if path.startswith("/usr")] == ["/usr", "/usr/a", "/usr/a/b", "/usr/b"]
    assert {"ro", "nosuid", "nodev", "size=4k"} <= set(options(config, "/usr/a"))
    assert "ro" in options(config, "/usr/b")


def test_the_command_stands_last_and_unchanged() -> None:
    words = document(["rm", "-rf", "$HOME", "--"])["process"]["args"]
    assert words[-4:] == ["rm", "-rf", "$HOME", "--"]
    assert words[words.index("-i") + 1 : -4] == ["--", "PWD=/workspace", "A=b"]
    script = words[words.index("-c") + 1]
    assert "ulimit -S -n 64; ulimit -H -n 64; " in script
    assert "ulimit -S -f 2048; " in script
    assert "ulimit -S -t 2; ulimit -H -t 3; " in script


def test_a_runtime_with_a_kernel_of_its_own_needs_no_user_namespace() -> None:
    config = document(["true"], own_kernel=True)
    assert config["process"]["user"] == {"uid": 1000, "gid": 1000}
    assert config["process"]["capabilities"]["bounding"] == []
    assert oci_config.UNSHARE not in config["process"]["args"]


def test_gvisor_gets_no_filter_and_says_that_it_sees_nothing() -> None:
    sandbox = OciSandbox(SandboxSpec(), ALL_MEASURES, OCI_RUNTIMES["runsc"])
    plan = sandbox.plan(["true"])
    assert plan.filter == b""
    assert "--pass-fd=3:3" in plan.command
    assert {"--rootless", "--network=none", "--ignore-cgroups"} <= set(map(str, plan.command))


def test_the_bundle_is_laid_out_in_memory_and_hides_nothing_that_is_granted(tmp_path: Path) -> None:
    sandbox = OciSandbox(SandboxSpec(workspace=tmp_path), ALL_MEASURES, OCI_RUNTIMES["runc"])
    plan = sandbox.plan(["true"])
    (bundle,) = [entry.files for entry in plan.stage if entry.files]
    place = [entry.files is not None for entry in plan.stage].index(True)
    assert plan.command[plan.command.index("--bundle") + 1] == f"/mnt/{place}"
    assert json.loads(bundle["config.json"])["ociVersion"] == "1.0.2"
    assert bundle["rootfs/etc/passwd"].startswith("root:")
    assert "rootfs/var/tmp@" in bundle


def test_an_unknown_or_absent_runtime_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="unknown OCI runtime 'youki'"):
        OciBackend("youki")
    monkeypatch.setenv(RUNTIME_VARIABLE, "crun")
    assert OciBackend().runtime.name == "crun"
    if OCI_RUNTIMES["runsc"].program is None:
        with pytest.raises(MissingDependency, match=r"runsc \(see gvisor"):
            OciBackend("runsc").start(SandboxSpec())


def test_what_the_sandbox_is_made_of_cannot_be_taken_away() -> None:
    with pytest.raises(BadInput, match="own-processes"):
        OciBackend("runc").start(SandboxSpec(), without=frozenset({"own-processes"}))


@pytest.fixture(params=["runc", "crun"])
def live(request: pytest.FixtureRequest) -> OciBackend:
    backend = OciBackend(request.param)
    probe = backend.probe()
    if not probe.available:
        pytest.skip("; ".join(probe.missing))
    return backend


def run(backend: OciBackend, script: str, without: str = "", policy: SandboxPolicy | None = None) -> ExecResult:
    sandbox = backend.start(SandboxSpec(policy=policy or SandboxPolicy()), without=frozenset(without.split()))
    return sandbox.exec(["sh", "-c", script])


def test_it_holds_no_session() -> None:
    sandbox = OciSandbox(SandboxSpec(), ALL_MEASURES, OCI_RUNTIMES["runc"])
    with pytest.raises(MissingDependency, match="a session needs bubblewrap"):
        ShellSession(sandbox)


def test_it_can_be_opened_by_name() -> None:
    assert open_backend("oci").name == "oci"


MATTERS = {
    "own-host-name": "test $(uname -n) = sandbox",
    "own-accounts": "test $(wc -l < /etc/passwd) = 2",
    "sealed-root": "! touch /new",
    "sized-memory-disks": "test $(df -m --output=size /tmp | tail -n 1) -le 2048",
    "no-capabilities": "grep -q 'CapEff:.0000000000000000' /proc/self/status",
    "no-core-dumps": "test $(ulimit -H -c) != unlimited",
    "resource-limits": "test $(ulimit -H -n) = 64",
    "own-cgroup-view": "! grep -q gametape /proc/self/cgroup",
    "call-filter": "! unshare --user true 2> /dev/null && test $(grep -c 'Seccomp:.2' /proc/self/status) = 1",
}


@pytest.mark.parametrize("measure", MATTERS)
def test_a_measure_matters(measure: str, live: OciBackend) -> None:
    if measure == "own-cgroup-view" and live.probe().capabilities.cgroup is None:
        pytest.skip("no writable control group here")
    policy = SandboxPolicy(limits=SandboxLimits(open_files=64))
    assert run(live, MATTERS[measure], policy=policy).exit_code == 0
    if measure == "no-core-dumps" and run(live, "test $(ulimit -H -c) != unlimited", measure).exit_code == 0:
        pytest.skip("this host allows no core files anyway")
    assert run(live, MATTERS[measure], measure, policy).exit_code == 1


def test_nested_users_are_stopped_twice(live: OciBackend) -> None:
    nested = "unshare --user true"
    assert run(live, nested).exit_code == 1
    assert "No space left" in run(live, nested, "call-filter").stderr
    assert run(live, nested, "no-nested-users").exit_code == 1
    assert run(live, nested, "call-filter no-nested-users").exit_code == 0


def test_the_first_process_cannot_be_looked_into(live: OciBackend) -> None:
    """It reports the exit code: whoever could write to its memory could forge it."""
    look = "cat /proc/1/environ || head -c 1 /proc/1/mem || readlink /proc/1/fd/9 || echo > /proc/1/task/1/mem"
    assert run(live, look, "call-filter").exit_code != 0
    assert run(live, "readlink /proc/1/fd/9", "call-filter sealed-first-process").exit_code == 0


@pytest.mark.parametrize("limit", ["memory", "processes"])
def test_limits_hold_without_control_groups(limit: str, live: OciBackend) -> None:
    code = {
        "memory": "x = []\nwhile True: x.append(bytearray(b'x' * (1 << 22)))",
        "processes": "import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(100)",
    }[limit]
    policy = SandboxPolicy(limits=SandboxLimits(wall_seconds=600, memory_mb=200, processes=40))
    sandbox = live.start(SandboxSpec(policy=policy), without=frozenset({"control-group"}))
    result = sandbox.exec(["python3", "-c", code])
    assert (result.killed_by, result.assurance) == (limit, "reduced")
    harmless = sandbox.exec(["python3", "-c", "x = bytearray(b'x' * (70 << 20)); print('fine')"])
    assert (harmless.stdout, harmless.killed_by) == ("fine\n", None)


def test_the_audit_pipe_is_passed_on_and_no_other_descriptor(live: OciBackend) -> None:
    count = "ls /proc/self/fd | wc -l"  # the three, and the one that lists
    assert run(live, count).stdout == "4\n"
    assert run(live, count, policy=SandboxPolicy(language=PythonRules())).stdout == "5\n"
