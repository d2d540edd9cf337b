"""The docker backend without an engine: the command line, the profile, and how answers of docker's client are read.

The client is a stand-in that runs harmless commands on the host. Against a real engine, test_conformance.py runs.
"""

import errno
import itertools
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from gametape.core.errors import BadInput, MissingDependency
from gametape.sandbox import seccomp
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.docker import IMAGE_VARIABLE, DockerBackend, DockerClient, DockerSandbox
from gametape.sandbox.docker_command import ContainerSpec, docker_run_argv, seccomp_profile
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.mounts import MaskedPath, Mount
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy

CLIENT = f"""#!{sys.executable}
import json, os, signal, subprocess, sys
place = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
with open(place + "/calls", "a") as file: file.write(json.dumps(words) + "\\n")
settings = json.load(open(place + "/settings.json"))
if words[0] == "info":
    print(json.dumps(settings["info"]))
elif words[0] == "image":
    sys.exit(settings["image"])
elif words[0] == "ps":
    print(settings["ps"])
elif words[0] == "kill":
    os.kill(int(open(place + "/pid").read()), signal.SIGKILL)
elif words[0] == "inspect":
    if "state" not in settings: sys.exit(1)
    print(json.dumps({{**settings["state"], "ExitCode": int(open(place + "/code").read())}}))
elif words[0] == "run":
    if "refuse" in settings: sys.exit(settings["refuse"])
    profile = [word.partition("=")[2] for word in words if word.startswith("seccomp=")][0]
    open(place + "/profile.json", "w").write(open(profile).read())
    at = words.index("--entrypoint")
    child = subprocess.Popen([words[at + 1], *words[at + 3:]])
    open(place + "/pid", "w").write(str(child.pid))
    code = child.wait()
    open(place + "/code", "w").write(str(128 - code if code < 0 else code))
    sys.exit(0)
"""

WORKING = {
    "info": {"ServerVersion": "28.0", "CgroupVersion": "2", "SecurityOptions": ["name=seccomp", "name=rootless"]},
    "image": 0,
    "ps": "",
    "state": {"OOMKilled": False, "Error": ""},
}


class StandIn:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.path = place / "docker"
        self.path.write_text(CLIENT)
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self.set()

    def set(self, **changes: Any) -> None:
        settings = {name: value for name, value in {**WORKING, **changes}.items() if value is not None}
        (self.place / "settings.json").write_text(json.dumps(settings))

    def calls(self, verb: str) -> list[list[str]]:
        lines = (self.place / "calls").read_text().splitlines()
        return [words for words in map(json.loads, lines) if words[0] == verb]

    def sandbox(self, **limits: Any) -> DockerSandbox:
        spec = SandboxSpec(policy=SandboxPolicy(limits=SandboxLimits(**limits), environment=(("A", "b c"),)))
        return DockerSandbox(spec, DockerClient(str(self.path)), "image:1")


@pytest.fixture
def docker(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


def container(**changes: Any) -> ContainerSpec:
    plain = {
        **{"name": "box", "owner": "here:1", "image": "image:1", "profile": "/profile.json", "user": (1000, 1001)},
        **{"mounts": [], "hidden": [], "masked": [], "own_workspace": True, "environment": {"A": "b c"}},
        "limits": SandboxLimits(memory_mb=100, processes=10, open_files=20, file_size_mb=3, disk_mb=4, cpu_seconds=5),
        "file_bytes": 3 << 20,
    }
    return ContainerSpec(**{**plain, **changes})


def pairs(words: list[str]) -> set[tuple[str, str]]:
    return set(itertools.pairwise(words))


def test_every_option_of_the_wall_is_there() -> None:
    words = docker_run_argv("docker", container(), ["ls", "-l"])
    assert words[:2] == ["docker", "run"]
    assert {"--read-only", "--init", "--interactive"} <= set(words)
    assert pairs(words) >= {
        *(("--network", "none"), ("--cap-drop", "ALL"), ("--pull", "never"), ("--ipc", "private")),
        *(("--security-opt", "no-new-privileges"), ("--security-opt", "seccomp=/profile.json")),
        *(("--user", "1000:1001"), ("--workdir", "/workspace"), ("--name", "box"), ("--label", "gametape=here:1")),
        *(("--memory", "100m"), ("--memory-swap", "100m"), ("--pids-limit", "11"), ("--log-driver", "none")),
        *(("--ulimit", "nofile=20:20"), ("--ulimit", "fsize=3145728:3145728"), ("--ulimit", "cpu=6:7")),
        *(("--ulimit", "core=0:0"), ("--shm-size", "4m")),
        ("--tmpfs", "/workspace:rw,exec,nosuid,nodev,mode=1777,size=4m,nr_inodes=4096"),
    }
    assert not {"--privileged", "--publish", "-p", "--device", "--pid", "--add-host"} & set(words)


def test_the_image_and_the_command_stand_last() -> None:
    words = docker_run_argv("docker", container(), ["ls", "--network", "host"])
    at = words.index("--entrypoint")
    last = ["/usr/bin/env", "image:1", "-i", "--", "PWD=/workspace", "A=b c", "ls", "--network", "host"]
    assert words[at + 1 :] == last
    assert docker_run_argv("docker", container(), ["a=b", "c"])[-5:] == ["/bin/sh", "-c", 'exec "$0" "$@"', "a=b", "c"]


def test_any_path_can_be_granted_and_sockets_are_masked() -> None:
    visible = [Mount("/srv/a,b:c", "/srv/a,b:c"), Mount("/srv/w", "/workspace", writable=True)]
    words = docker_run_argv("docker", container(mounts=visible, masked=["/workspace/s"], own_workspace=False), ["true"])
    assert [words[at + 1] for at, word in enumerate(words) if word == "--mount"] == [
        'type=bind,"source=/srv/a,b:c","target=/srv/a,b:c",readonly',
        "type=bind,source=/srv/w,target=/workspace",
        "type=bind,source=/dev/null,target=/workspace/s,readonly",
    ]
    assert not [word for word in words if word.startswith("/workspace:rw")]


def test_what_lies_below_a_grant_can_be_hidden() -> None:
    hidden = [MaskedPath("/srv/a/b", directory=True), MaskedPath("/srv/a/c", directory=False)]
    words = docker_run_argv("docker", container(mounts=[Mount("/srv/a", "/srv/a")], hidden=hidden), ["true"])
    assert [words[at + 1] for at, word in enumerate(words) if word == "--mount"][1:] == [
        "type=tmpfs,target=/srv/a/b,tmpfs-size=4096,tmpfs-mode=0755,readonly",
        "type=bind,source=/dev/null,target=/srv/a/c,readonly",
    ]


def entries(name: str, policy: SandboxPolicy | None = None) -> list[dict[str, Any]]:
    profile = seccomp_profile((policy or SandboxPolicy()).rules())
    return [entry for entry in profile["syscalls"] if entry["names"] == [name]]


def test_the_profile_refuses_what_the_wall_refuses() -> None:
    for name in ("mount", "ptrace", "bpf", "keyctl", "unshare", "setns"):
        assert entries(name) == [{"names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.EPERM}]
    assert [entry["errnoRet"] for entry in entries("clone3")] == [errno.ENOSYS]
    assert entries("shmget", SandboxPolicy(denied_syscalls=("shmget",)))


def test_the_profile_leaves_alone_what_the_supervisor_would_let_go() -> None:
    assert not entries("execve")
    assert not entries("connect", SandboxPolicy(network="loopback"))
    assert all(entry.get("args") for entry in entries("openat"))


def test_a_profile_says_with_many_entries_what_a_rule_says_with_one() -> None:
    flags = {entry["args"][0]["value"] for entry in entries("clone")}
    assert len(flags) == 8
    assert sum(flags) == seccomp.NEW_NAMESPACE_FLAGS
    assert {entry["args"][0]["op"] for entry in entries("clone")} == {"SCMP_CMP_MASKED_EQ"}
    refused = {entry["args"][0]["value"] for entry in entries("socket") if entry["args"][0]["op"] == "SCMP_CMP_EQ"}
    assert refused == set(range(64)) - {1}
    assert [entry["args"] for entry in entries("socket") if entry["args"][0]["op"] == "SCMP_CMP_GT"] == [
        [{"index": 0, "value": 63, "op": "SCMP_CMP_GT"}]
    ]
    assert [[way["index"] for way in entry["args"]] for entry in entries("openat")] == [[2, 3]] * 4


def test_no_entry_says_two_things_about_one_argument() -> None:
    """The engine would take them for alternatives."""
    for policy in (SandboxPolicy(), SandboxPolicy(network="loopback")):
        for entry in seccomp_profile(policy.rules())["syscalls"]:
            numbers = [way["index"] for way in entry.get("args", ())]
            assert len(numbers) == len(set(numbers))


def test_the_probe_says_what_is_missing(docker: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "docs.docker.com" in DockerBackend().probe().missing[0]
    client = str(docker.path)
    docker.set(info={"ServerErrors": ["Cannot connect"]})
    assert DockerBackend("one", client).probe().missing == ("a docker engine that answers (Cannot connect)",)
    docker.set(image=1)
    assert "docker pull two" in DockerBackend("two", client).probe().missing[0]
    with pytest.raises(MissingDependency, match="docker pull two"):
        DockerBackend("two", client).start(SandboxSpec())
    docker.set()
    probe = DockerBackend("three", client).probe()
    assert (probe.available, probe.capabilities.cgroup, probe.capabilities.rootless) == (True, "v2", True)
    assert not probe.capabilities.syscall_events
    with pytest.raises(MissingDependency, match="syscall_events"):
        DockerBackend("three", client).start(SandboxSpec(requires=frozenset({"syscall_events"})))


def test_the_image_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DockerBackend().image == "python:3.11-slim"
    monkeypatch.setenv(IMAGE_VARIABLE, "other:2")
    assert open_backend("docker").image == "other:2"  # type: ignore[attr-defined]


def test_a_command_runs_and_its_container_goes(docker: StandIn) -> None:
    result = docker.sandbox().exec(["sh", "-c", "cat; echo $A >&2; exit 3"], b"given")
    assert (result.stdout, result.stderr, result.exit_code, result.killed_by) == ("given", "b c\n", 3, None)
    (run,), (removal,) = docker.calls("run"), docker.calls("rm")
    assert removal == ["rm", "--force", "--volumes", run[run.index("--name") + 1]]
    assert json.loads((docker.place / "profile.json").read_text())["defaultAction"] == "SCMP_ACT_ALLOW"
    assert docker.calls("kill") == []


def test_limits_that_the_host_holds_end_it(docker: StandIn) -> None:
    assert docker.sandbox(wall_seconds=0.5).exec(["sleep", "100000"]).killed_by == "time"
    result = docker.sandbox(output_bytes=1000).exec(["yes"])
    assert (result.killed_by, len(result.stdout)) == ("output", 1000)
    assert len(docker.calls("kill")) == len(docker.calls("rm")) == 2


def test_what_the_engine_says_about_the_end_is_read(docker: StandIn) -> None:
    docker.set(state={"OOMKilled": True, "Error": ""})
    assert docker.sandbox().exec(["sh", "-c", "kill -9 $$"]).killed_by == "memory"
    assert docker.sandbox().exec(["true"]).killed_by is None
    docker.set()
    result = docker.sandbox(cpu_seconds=1).exec(["sh", "-c", "sleep 1; kill -XCPU $$"])
    assert (result.killed_by, result.exit_code, result.signal) == ("cpu", 152, 24)
    early = docker.sandbox(cpu_seconds=1_000).exec(["sh", "-c", "kill -XCPU $$"])
    assert (early.killed_by, early.exit_code, early.signal) == (None, 152, 24), "anybody can send a signal"
    docker.set(state=None, refuse="docker: no such option")
    with pytest.raises(SandboxError, match="no such option"):
        docker.sandbox().exec(["true"])


def test_the_command_is_never_root(docker: StandIn, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    if os.geteuid() == 0:
        with pytest.raises(BadInput, match="chown"):
            DockerSandbox(SandboxSpec(workspace=workspace), DockerClient("docker"), "image:1")
        os.chown(workspace, 1234, 1235)
    sandbox = DockerSandbox(SandboxSpec(workspace=workspace), DockerClient("docker"), "image:1")
    assert sandbox.user == (workspace.stat().st_uid, workspace.stat().st_gid)
    assert sandbox.container("n", "p").mounts == [Mount(str(workspace), "/workspace", writable=True)]


def test_containers_of_hosts_that_are_gone_are_removed(docker: StandIn) -> None:
    here = os.uname().nodename
    docker.set(ps=f"one {here}:999999999\ntwo {here}:{os.getpid()}\nthree elsewhere:999999999")
    DockerBackend("four", str(docker.path)).start(SandboxSpec())
    assert docker.calls("rm") == [["rm", "--force", "one"]]
