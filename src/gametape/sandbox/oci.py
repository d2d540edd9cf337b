"""A backend that drives an OCI runtime directly, with no daemon: `runc`, `crun`, or gVisor's `runsc`.

It isolates as bubblewrap does, with another builder: the keeper drops to a user that owns nothing, writes the bundle in
memory in a private mount namespace, makes a user namespace, installs the filter, and executes the runtime. Nothing of
it is on the host's disk. `oci_config.py` writes the bundle's configuration.

`runsc` is written against its documentation and was never run by us. It has a kernel of its own, so the filter would
stop the sentry rather than the command: with it there are no events, and no filter.
"""

import dataclasses
import functools
import json
import os
import shutil
from dataclasses import dataclass

from gametape.core.errors import BadInput, MissingDependency
from gametape.sandbox import linux, mounts, oci_config
from gametape.sandbox.backend import SandboxSpec, require_capabilities
from gametape.sandbox.child_setup import STAGING_DIRECTORY
from gametape.sandbox.hardening_measures import ALL_MEASURES
from gametape.sandbox.keeper_client import CommandWord, LaunchPlan, StagedEntry
from gametape.sandbox.mounts import Mount
from gametape.sandbox.network_proxy import NetworkProxy
from gametape.sandbox.oneshot import OneShotSandbox, probe_by_running
from gametape.sandbox.policy import HOME
from gametape.sandbox.result import BackendCapabilities, BackendProbe, ExecResult, PolicyViolation
from gametape.sandbox.supervisor import RawOutcome, SupervisionContext

RUNTIME_VARIABLE = "GAMETAPE_OCI_RUNTIME"

_FIXED = frozenset({"own-users", "own-processes", "new-session", "hidden-options", "empty-environment"})
"""Measures that are part of how the sandbox is built and cannot be taken away."""

_SET_INSIDE = frozenset({"NOFILE", "FSIZE", "CPU"})
"""Limits that hold for the command alone: the runtime copies itself into memory, and passes output on."""

_EMPTY = "empty"

_HYBRID = "/sys/fs/cgroup/unified"
"""crun gives up when it finds version 2 beside version 1, even when told to leave control groups alone."""


@dataclass(frozen=True)
class OciRuntime:
    """A program that runs bundles, and its peculiarities."""

    name: str
    package: str
    options: tuple[str, ...]
    run_options: tuple[str, ...] = ("--no-new-keyring",)
    environment: tuple[tuple[str, str], ...] = ()
    processes: int = 2
    """What it needs for itself, threads included: itself outside, and the first process inside."""
    megabytes: int = 0
    exact: bool = True
    """Whether it always needs just as much."""
    covers: tuple[str, ...] = ()
    """Directories of the host that it must find empty."""
    own_kernel: bool = False

    def fd_options(self, count: int) -> list[str]:
        """The options that hand the descriptors from 3 on to the first process."""
        if self.own_kernel:
            return [f"--pass-fd={number}:{number}" for number in range(3, 3 + count)]
        return [f"--preserve-fds={count}"]

    @property
    def program(self) -> str | None:
        return shutil.which(self.name, path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin")


OCI_RUNTIMES = {
    runtime.name: runtime
    for runtime in (
        OciRuntime(
            name="runc",
            package="apt-get install runc",
            options=("--rootless=true",),
            environment=(("GOMAXPROCS", "1"),),
            processes=16,
            megabytes=24,
            exact=False,
        ),
        OciRuntime(
            name="crun",
            package="apt-get install crun",
            options=("--cgroup-manager=disabled",),
            covers=(_HYBRID,),
        ),
        OciRuntime(
            name="runsc",
            package="see gvisor.dev/docs/user_guide/install",
            options=("--rootless", "--network=none", "--ignore-cgroups"),
            run_options=(),
            processes=128,
            megabytes=256,
            exact=False,
            own_kernel=True,
        ),
    )
}
"""In order of preference; gVisor must be named."""


class OciBackend:
    """`runtime` names one of `OCI_RUNTIMES`; else GAMETAPE_OCI_RUNTIME does; else it is the first that is installed."""

    name = "oci"

    def __init__(self, runtime: str | None = None) -> None:
        wanted = runtime or os.environ.get(RUNTIME_VARIABLE) or _installed()
        if wanted not in OCI_RUNTIMES:
            raise BadInput(f"unknown OCI runtime {wanted!r}; known: {', '.join(OCI_RUNTIMES)}")
        self.runtime = OCI_RUNTIMES[wanted]

    def probe(self) -> BackendProbe:
        """Start a sandbox that does nothing, and see whether that works."""
        return _probe(self.runtime)

    def start(self, spec: SandboxSpec, without: frozenset[str] = frozenset()) -> "OciSandbox":
        """`without` takes hardening measures away, to show what each is for. Never use it for hostile code."""
        if fixed := without & _FIXED:
            raise BadInput(f"the oci sandbox cannot be built without {', '.join(sorted(fixed))}")
        require_capabilities(f"oci ({self.runtime.name})", self.probe(), spec.needs())
        return OciSandbox(spec, ALL_MEASURES - without, self.runtime)


def _installed() -> str:
    usual = [name for name, runtime in OCI_RUNTIMES.items() if not runtime.own_kernel]
    return next((name for name in usual if OCI_RUNTIMES[name].program), usual[0])


@functools.cache
def _probe(runtime: OciRuntime) -> BackendProbe:
    missing_program = None
    if runtime.program is None:
        missing_program = f"{runtime.name} ({runtime.package})"
    elif closed := [program for program in oci_config.FIRST_PROCESS if not os.access(program, os.X_OK)]:
        missing_program = f"{', '.join(closed)} (apt-get install util-linux coreutils)"
    own_kernel = runtime.own_kernel
    capabilities = BackendCapabilities(
        network_isolation=True, kernel_isolation=own_kernel, syscall_events=not own_kernel
    )
    return probe_by_running(
        runtime.name, missing_program, lambda: OciSandbox(SandboxSpec(), ALL_MEASURES, runtime), capabilities
    )


class OciSandbox(OneShotSandbox):
    def __init__(self, spec: SandboxSpec, measures: frozenset[str], runtime: OciRuntime) -> None:
        super().__init__(spec, measures - {"call-filter"} if runtime.own_kernel else measures)
        self.runtime = runtime
        self.name = f"oci/{runtime.name}"

    def plan(self, argv: list[str]) -> LaunchPlan:
        """The same plan as bubblewrap's, with room in every limit for the runtime, which is larger."""
        if self.holds_session:
            raise MissingDependency("the oci sandbox runs single commands; a session needs bubblewrap")
        plan = super().plan(argv)
        rlimits = {name: value for name, value in plan.rlimits.items() if name not in _SET_INSIDE}
        return dataclasses.replace(
            plan,
            rlimits=rlimits,
            memory_bytes=(self.limits.memory_mb + self.runtime.megabytes) << 20,
            processes=self.limits.processes + self.runtime.processes,
            environment=dict(self.runtime.environment),
            inner_users=1 if "no-nested-users" in self.measures else 1 << 10,
        )

    def supervision_context(self, network: NetworkProxy | None = None) -> SupervisionContext:
        context = super().supervision_context(network)
        return dataclasses.replace(context, temporary=(*context.temporary, HOME))

    def result(self, outcome: RawOutcome, violations: list[PolicyViolation]) -> ExecResult:
        result = super().result(outcome, violations)
        if self.runtime.exact:
            return result
        return result.model_copy(update={"usage": result.usage.model_copy(update={"peak_processes": None})})

    def _for_builder(self, descriptors: list[int]) -> list[int]:
        """The runtime gets stdin and stderr of its own; the command's descriptors pass through it unchanged."""
        return [_nothing(), descriptors[1], descriptors[2], *descriptors]

    def _must_be_staged(self, mount: Mount) -> bool:
        """The bundle's staging directory hides the host's files below its path."""
        return super()._must_be_staged(mount) or mount.source.startswith(STAGING_DIRECTORY + "/")

    def _builder(self, argv: list[str], staged_paths: dict[Mount, str]) -> tuple[list[CommandWord], list[StagedEntry]]:
        runtime, bundle = self.runtime, f"{STAGING_DIRECTORY}/{len(staged_paths)}"
        inside = self._inside(staged_paths, f"{bundle}/{_EMPTY}")
        document = json.dumps(oci_config.bundle_config(argv, inside), ensure_ascii=True)
        files = {"config.json": document, "state/": "", _EMPTY: "", **oci_config.root_files(inside)}
        passed = 4 if self.spec.policy.language else 3
        command = [runtime.program or runtime.name, "--root", f"{bundle}/state", *runtime.options]
        command += ["run", *runtime.run_options, *runtime.fd_options(passed), "--bundle", bundle, "sandbox"]
        covered = [StagedEntry(covered=path) for path in runtime.covers if os.path.isdir(path)]
        return [*command], [StagedEntry(files=files), *covered]

    def _no_such_command(self, outcome: RawOutcome) -> bool:  # noqa: ARG002 - the first process says so itself, with 127
        return False

    def _inside(self, staged_paths: dict[Mount, str], empty: str) -> oci_config.BundleSpec:
        on = self.measures.__contains__
        accounts = [] if on("own-accounts") else [Mount("/etc/passwd", "/etc/passwd")]
        return oci_config.BundleSpec(
            measures=self.measures,
            granted=[*self.granted, *accounts],
            staged_paths=staged_paths,
            hidden=self.hidden,
            empty=empty,
            masked=mounts.host_sockets(self.granted, self.hidden) if on("masked-sockets") else [],
            files=self.files(),
            links=mounts.usr_links(),
            environment=self.environment(),
            temporary_megabytes=self.temporary_megabytes(),
            limits={
                name: linux.clamp_rlimit(name, wanted) for name, wanted in self.rlimits().items() if name in _SET_INSIDE
            },
            own_workspace=self.own_workspace,
            own_kernel=self.runtime.own_kernel,
            audited=self.spec.policy.language is not None,
        )


@functools.cache
def _nothing() -> int:
    """A descriptor on which there is nothing to read, for the life of the process."""
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
