"""Build the virtual environment that a project's tests run in: pinned requirements, without the project itself.

Environments are stored under `home/environments` by a digest of their contents and shared. One is complete when its
label file exists, which is written last; the next builder removes what a killed one left. An environment is built in
its final directory, because a virtual environment cannot be moved.
"""

import hashlib
import importlib.metadata
import json
import platform
import shutil
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gametape.core.task import Origin
from gametape.record.atomic import write_atomically
from gametape.record.errors import write_error
from gametape.record.lock import locked
from gametape.tasks.dependency_env.distributions import (
    InstalledDistribution,
    NotInstallableError,
    install_distributions,
    read_installed,
    remove_distribution,
    remove_startup_code,
    write_name_only_metadata,
)
from gametape.tasks.dependency_env.interpreter_probe import probe_interpreter
from gametape.tasks.dependency_env.runner_requirements import why_runner_needs
from gametape.tasks.project import Project, ProjectRefused

_FORMAT = 1
_LABEL = "gametape.json"

StatusCallback = Callable[[str], None]


@dataclass(frozen=True)
class DependencyEnv:
    """An interpreter, and the pins of everything installed there: pytest and coverage included, the project not."""

    interpreter: Path
    dependencies: tuple[str, ...]


def build_dependency_env(project: Project, home: Path, on_status: StatusCallback) -> DependencyEnv:
    """An environment with what the project and its tests need, built from wheels alone: installing runs no code.

    Raises `ProjectRefused` if it cannot be built, and `MissingDependency` if the package index cannot be reached. A
    test requirement without a wheel is left out and reported: the tests that need it will not count.
    """
    _refuse_self_hosting(project)
    runner = _runner_pins()
    key = (
        "project",
        *runner,
        *project.requirements,
        "tests",
        *project.test_requirements,
        "names",
        *sorted(project.packages),
    )
    origin = Origin(name=project.name, version=project.version)

    def fill(interpreter: Path) -> None:
        requirements = ", ".join((*project.requirements, *project.test_requirements))
        on_status(f"building an environment of pytest and coverage{requirements and ', '}{requirements}")
        _install_for(project, interpreter, runner, on_status)
        remove_startup_code(interpreter)
        _take_out_project(project, interpreter)

    return _shared_env(home, key, origin, fill)


def rebuild_dependency_env(
    dependencies: Sequence[str], origin: Origin | None, home: Path, on_status: StatusCallback
) -> DependencyEnv:
    """The environment of a task, from its pinned dependencies. Raises what `build_dependency_env` raises."""

    def fill(interpreter: Path) -> None:
        on_status(f"building an environment of {len(dependencies)} pinned distributions")
        try:
            install_distributions(interpreter, dependencies, resolved=True)
        except NotInstallableError as error:
            raise ProjectRefused(
                "environment", f"{error.what} cannot be installed from a wheel here: {error.line}"
            ) from error
        remove_startup_code(interpreter)

    return _shared_env(home, ("pinned", *sorted(dependencies)), origin, fill)


def check_given_interpreter(project: Project, interpreter: Path) -> DependencyEnv:
    """A user's interpreter, after checking that it has pytest and coverage and does not have the project."""
    _refuse_self_hosting(project)
    report = probe_interpreter(interpreter, _import_names(project))
    if report.importable:
        name, location = report.importable[0]
        raise ProjectRefused(
            "installed_copy",
            f"{interpreter} can import {name} ({location}), which is the answer; uninstall {project.name} from it",
        )
    return DependencyEnv(report.interpreter, report.dependencies)


def _refuse_self_hosting(project: Project) -> None:
    """Refuse a project that the test runner itself needs: removing it from an environment would break the runner."""
    if reason := why_runner_needs(project.name, project.packages):
        raise ProjectRefused("self_hosting", reason)


def _runner_pins() -> tuple[str, ...]:
    return tuple(f"{name}=={importlib.metadata.version(name)}" for name in ("coverage", "pytest"))


def _shared_env(home: Path, key: Sequence[str], origin: Origin | None, fill: Callable[[Path], None]) -> DependencyEnv:
    """The stored environment for this key, or a new one that `fill` installs into."""
    machine = (str(_FORMAT), sys.version, sys.base_prefix, sysconfig.get_platform(), platform.machine())
    named = (origin.name, origin.version) if origin else ()
    digest = hashlib.sha256(json.dumps([*machine, *key, *named]).encode()).hexdigest()[:32]
    directory = home / "environments" / digest
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _locked(directory):
            return _read(directory) or _build(directory, origin, fill)
    except OSError as error:
        raise write_error(Path(error.filename or directory), error) from error


def _build(directory: Path, origin: Origin | None, fill: Callable[[Path], None]) -> DependencyEnv:
    shutil.rmtree(directory, ignore_errors=True)
    try:
        venv.EnvBuilder(symlinks=True, with_pip=False).create(directory)
        interpreter = directory / "bin/python"
        fill(interpreter)
        dependencies = tuple(distribution.pin for distribution in read_installed(interpreter))
        if origin:
            write_name_only_metadata(interpreter, origin)
        write_atomically(directory / _LABEL, json.dumps({"dependencies": dependencies}).encode())
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return DependencyEnv(interpreter, dependencies)


def _read(directory: Path) -> DependencyEnv | None:
    """The environment in a directory; None if there is no complete one."""
    try:
        label = json.loads((directory / _LABEL).read_bytes())
        dependencies = tuple(map(str, label["dependencies"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    interpreter = directory / "bin/python"
    return DependencyEnv(interpreter, dependencies) if interpreter.exists() else None


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the lock of an environment: one builder at a time.

    The installer process inherits the lock, because it goes on writing when the builder is killed; the kernel releases
    the lock when its last holder ends."""
    with locked(directory.with_name(f".{directory.name}.lock"), inheritable=True):
        yield


def _install_for(project: Project, interpreter: Path, runner: Sequence[str], on_status: StatusCallback) -> None:
    """Install all requirements as declared; if that fails, drop the test requirement at fault, then version bounds."""
    wanted: dict[str, str] = {canonicalize_name(Requirement(line).name): line for line in project.test_requirements}
    while True:
        try:
            install_distributions(interpreter, [*runner, *project.requirements, *wanted.values()])
            return
        except NotInstallableError as error:
            blamed = [name for name in error.names if name in wanted]
            bare = {name: _bare(line) for name, line in wanted.items()}
            if blamed:
                on_status(f"{wanted[blamed[0]]} is left out, and with it the tests that need it: {error.line}")
                del wanted[blamed[0]]
            elif error.conflict and bare != wanted:
                on_status(f"the tests get other versions than they ask for: {error.line}")
                wanted = bare
            else:
                raise ProjectRefused("environment", _not_installable(error)) from error


def _bare(line: str) -> str:
    requirement = Requirement(line)
    return f"{requirement.name}[{','.join(sorted(requirement.extras))}]" if requirement.extras else requirement.name


def _not_installable(error: NotInstallableError) -> str:
    return (
        f"{error.what} cannot be installed from a wheel: {error.line}; "
        "give an interpreter that has it, pytest and coverage with --python"
    )


def _take_out_project(project: Project, interpreter: Path) -> None:
    """Remove an installed copy of the project, which a requirement may have brought: the workspace has its own."""
    own = canonicalize_name(project.name)
    for distribution in read_installed(interpreter):
        if canonicalize_name(distribution.name) == own:
            remove_distribution(interpreter, distribution)
    if clash := next(_providers(project, interpreter), None):
        raise ProjectRefused(
            "self_dependency",
            f"{clash.name}, which is among the requirements, brings {', '.join(project.packages)} as well: "
            "what is tested would not be what is in the code base",
        )


def _providers(project: Project, interpreter: Path) -> Iterator[InstalledDistribution]:
    names = [name.split(".") for name in _import_names(project)]
    for distribution in read_installed(interpreter):
        for file in distribution.files:
            parts = file.parts
            if any(list(parts[: len(name)]) == name or file.as_posix() == f"{'/'.join(name)}.py" for name in names):
                yield distribution
                break


def _import_names(project: Project) -> tuple[str, ...]:
    """The import names that only this project provides; for a namespace package, those of the packages in it."""
    names = []
    for source, name in zip(project.source_paths, project.packages, strict=True):
        if source.endswith(".py") or f"{source}/__init__.py" in project.tree:
            names.append(name)
            continue
        below = [path.removeprefix(f"{source}/") for path in project.tree if path.startswith(f"{source}/")]
        regular = {path.removesuffix("/__init__.py") for path in below if path.endswith("/__init__.py")}
        tops = {package for package in regular if not any(package.startswith(f"{other}/") for other in regular)}
        tops |= {path.removesuffix(".py") for path in below if path.endswith(".py") and "/" not in path}
        names += [f"{name}.{top.replace('/', '.')}" for top in sorted(tops)] or [name]
    return tuple(names)
