"""A backend for people who have a Docker engine: one container per command.

Never run by us against a real engine: no machine of ours has one. The command line and the profile are tested, with a
stand-in for docker's client; the conformance suite runs against an engine where there is one.

Its isolation differs from the default. The engine builds the sandbox from an image (`GAMETAPE_DOCKER_IMAGE`) and not
from the host's programs: third-party code in the image is not hidden, only what lies below a grant can be. Calls are
refused but not recorded; and if the host program is killed, its container runs until it ends by itself or the next
start removes it.
"""

import functools
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gametape.core.errors import BadInput, MissingDependency
from gametape.sandbox import mounts, python_rules
from gametape.sandbox.backend import SandboxSpec, WorkspaceSandbox, require_capabilities
from gametape.sandbox.disk_watch import DiskWatch, most_bytes_in_a_file
from gametape.sandbox.docker_command import LABEL, ContainerSpec, docker_run_argv, seccomp_profile
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.mounts import Mount
from gametape.sandbox.output import OutputCapture, sanitize, secret_values
from gametape.sandbox.policy import HOME, WORKSPACE, SandboxLimits
from gametape.sandbox.result import BackendCapabilities, BackendProbe, ExecResult, KilledBy, ResourceUsage
from gametape.sandbox.supervisor import CHUNK, TICK_MS

IMAGE_VARIABLE = "GAMETAPE_DOCKER_IMAGE"
DEFAULT_IMAGE = "python:3.11-slim"

_USER = (1000, 1000)
_PATIENCE = 20.0


@dataclass(frozen=True)
class DockerClient:
    """Runs short commands of docker's client."""

    client: str

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        try:
            command = [self.client, *words]
            return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return subprocess.CompletedProcess([self.client], 124, "", str(error))

    def query_json(self, *words: str) -> dict[str, Any]:
        """The JSON object that a command prints; empty when there is none."""
        answer = self.run(*words)
        try:
            document = json.loads(answer.stdout) if answer.returncode == 0 else {}
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}


class DockerBackend:
    name = "docker"

    def __init__(self, image: str | None = None, client: str | None = None) -> None:
        self.image = image or os.environ.get(IMAGE_VARIABLE) or DEFAULT_IMAGE
        self.client = client or shutil.which("docker")

    def probe(self) -> BackendProbe:
        """Ask the client for the engine, and the engine for the image."""
        return _probe(self.client, self.image)

    def start(self, spec: SandboxSpec) -> "DockerSandbox":
        require_capabilities(self.name, self.probe(), spec.needs())
        if spec.view is not None:
            raise MissingDependency("the docker sandbox cannot show a view of a snapshot; use bubblewrap")
        engine = DockerClient(self.client or "docker")
        _remove_orphans(engine)
        return DockerSandbox(spec, engine, self.image)


@functools.cache
def _probe(client: str | None, image: str) -> BackendProbe:
    def lacks(what: str) -> BackendProbe:
        return BackendProbe(available=False, capabilities=BackendCapabilities(), missing=(what,))

    if client is None:
        return lacks("docker's client (see docs.docker.com/engine/install)")
    engine = DockerClient(client)
    info = engine.query_json("info", "--format", "{{json .}}")
    if not info.get("ServerVersion"):
        errors = info.get("ServerErrors") or engine.run("version").stderr.strip().splitlines()[-1:]
        return lacks(f"a docker engine that answers ({'; '.join(errors) or 'start dockerd'})")
    if engine.run("image", "inspect", image).returncode != 0:
        return lacks(f"the image {image} (docker pull {image}, or name another in {IMAGE_VARIABLE})")
    options = " ".join(info.get("SecurityOptions") or ())
    capabilities = BackendCapabilities(
        network_isolation=True,
        cgroup="v2" if info.get("CgroupVersion") == "2" else "v1",
        rootless="rootless" in options,
    )
    return BackendProbe(available=True, capabilities=capabilities)


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _remove_orphans(engine: DockerClient) -> None:
    """Remove containers whose host program on this machine is gone."""
    listed = engine.run(
        "ps", "--all", "--filter", f"label={LABEL}", "--format", f'{{{{.ID}}}} {{{{.Label "{LABEL}"}}}}'
    )
    for line in listed.stdout.splitlines():
        container, _, owner = line.partition(" ")
        host, _, pid = owner.rpartition(":")
        if host == socket.gethostname() and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            engine.run("rm", "--force", container)


class DockerSandbox(WorkspaceSandbox):
    """Runs each command in a new container over the same workspace."""

    name = "docker"

    def __init__(self, spec: SandboxSpec, engine: DockerClient, image: str) -> None:
        self.spec = spec
        self.engine = engine
        self.image = image
        self.granted = _granted(spec)
        self.hidden = mounts.masked_paths(spec.policy, self.granted)
        self.workspace = next((mount.source for mount in self.granted if mount.target == WORKSPACE), None)
        self.user = _user(self.granted)

    def exec(self, argv: Sequence[str], stdin: bytes = b"") -> ExecResult:
        """Run one command to its end; the container is removed whatever happens."""
        self.check_command(argv)
        name = f"gametape-{secrets.token_hex(8)}"
        profile = os.memfd_create("gametape-seccomp")
        try:
            os.write(profile, json.dumps(seccomp_profile(self.spec.policy.rules())).encode())
            container = self.container(name, f"/proc/self/fd/{profile}")
            return self._run(container, list(argv), stdin, profile)
        finally:
            os.close(profile)
            self.engine.run("rm", "--force", "--volumes", name)

    def container(self, name: str, profile: str) -> ContainerSpec:
        policy = self.spec.policy
        basic = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": HOME, "USER": "agent", "LANG": "C.UTF-8"}
        return ContainerSpec(
            name=name,
            owner=_owner(),
            image=self.image,
            profile=profile,
            user=self.user,
            mounts=self.granted,
            hidden=self.hidden,
            masked=mounts.host_sockets(self.granted, self.hidden),
            own_workspace=self.workspace is None,
            environment={**basic, "TMPDIR": "/tmp", **dict(policy.environment)},
            limits=policy.limits,
            file_bytes=most_bytes_in_a_file(policy.limits, (mount.source for mount in self.granted if mount.writable)),
        )

    def _run(self, container: ContainerSpec, argv: list[str], stdin: bytes, profile: int) -> ExecResult:
        policy = self.spec.policy
        violations = python_rules.lint_command(argv, self.workspace, policy.language) if policy.language else []
        writable = [mount.source for mount in self.granted if mount.writable]
        disk = DiskWatch(writable, policy.limits.disk_mb << 20)
        began = time.monotonic()
        with tempfile.TemporaryFile() as stdin_file:
            stdin_file.write(stdin)
            stdin_file.seek(0)
            process = subprocess.Popen(
                docker_run_argv(self.engine.client, container, argv),
                stdin=stdin_file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[profile],
            )
            with process:
                capture = OutputCapture(policy.limits.output_bytes)
                try:
                    killed_by = self._watch(process, capture, disk, began)
                finally:
                    if process.poll() is None:
                        self.engine.run("kill", container.name)
                        process.kill()
        wall_seconds = time.monotonic() - began
        state = self.engine.query_json("inspect", "--format", "{{json .State}}", container.name)
        last_stderr_line = bytes(capture.streams["stderr"]).decode(errors="replace").strip().splitlines()[-1:]
        if killed_by is None and (not state or state.get("Error")):
            reason = state.get("Error") or " ".join(last_stderr_line) or "it did not say why"
            raise SandboxError(f"docker could not run the command: {reason}")
        code = 137 if killed_by else int(state.get("ExitCode", 1))
        ended_by = code - 128 if 128 < code <= 192 else None
        if killed_by is None and code != 0:
            killed_by = "memory" if state.get("OOMKilled") else _limit_of(ended_by, policy.limits, wall_seconds, disk)
        hidden = secret_values(os.environ)
        return ExecResult(
            exit_code=code,
            signal=ended_by,
            stdout=sanitize(bytes(capture.streams["stdout"]), hidden),
            stderr=sanitize(bytes(capture.streams["stderr"]), hidden),
            usage=ResourceUsage(wall_seconds=wall_seconds),
            killed_by=killed_by,
            violations=tuple(violations),
            backend=self.name,
            assurance="full",
            held_by={
                **dict.fromkeys(("memory", "processes"), "docker's control group"),
                **dict.fromkeys(("cpu", "open_files", "file_size"), "rlimit"),
                **{"disk": "watching", "wall": "supervisor", "output": "supervisor"},
            },
            policy_hash=policy.hash,
        )

    def _watch(
        self, process: "subprocess.Popen[bytes]", capture: OutputCapture, disk: DiskWatch, began: float
    ) -> KilledBy | None:
        """Read the output until the command ends or reaches a limit that only the host can hold."""
        limits = self.spec.policy.limits
        streams = {file.fileno(): name for name in ("stdout", "stderr") if (file := getattr(process, name))}
        poll = select.poll()
        for descriptor in streams:
            poll.register(descriptor, select.POLLIN)
        while streams:
            for descriptor, _event in poll.poll(disk.pause_ms(TICK_MS)):
                data = os.read(descriptor, CHUNK)
                if not data:
                    poll.unregister(descriptor)
                    del streams[descriptor]
                elif not capture.add(streams[descriptor], data):
                    return "output"
            if time.monotonic() - began >= limits.wall_seconds:
                return "time"
            if disk.exceeded():
                return "disk"
        process.wait()
        return "disk" if disk.exceeded(last_look=True) else None


def _limit_of(ended_by: int | None, limits: SandboxLimits, wall_seconds: float, disk: DiskWatch) -> KilledBy | None:
    """The limit whose signal ended a command, if the command can have reached it: anybody can send a signal."""
    cpu_most = wall_seconds * (os.cpu_count() or 1)
    if ended_by == signal.SIGXCPU and limits.cpu_seconds is not None and cpu_most >= limits.cpu_seconds:
        return "cpu"
    return "disk" if ended_by == signal.SIGXFSZ and disk.has_file_of(limits.file_size_mb << 20) else None


def _granted(spec: SandboxSpec) -> list[Mount]:
    """The workspace and what the policy names; the system itself comes from the image."""
    named = {WORKSPACE, *spec.policy.read_only, *spec.policy.writable}
    return [mount for mount in mounts.granted_mounts(spec.policy, spec.workspace) if mount.target in named]


def _user(granted: Sequence[Mount]) -> tuple[int, int]:
    """The command's user: the owner of what it may write to, so that files keep their owner; never root."""
    owners = {
        (status.st_uid, status.st_gid) for mount in granted if mount.writable for status in [os.stat(mount.source)]
    }
    if len(owners) > 1:
        raise BadInput("docker runs a command as one user: what it may write to must have one owner")
    user = owners.pop() if owners else _USER
    if user[0] == 0:
        raise BadInput(
            "docker would run the command as root: give the directories it may write to another owner (chown)"
        )
    return user
