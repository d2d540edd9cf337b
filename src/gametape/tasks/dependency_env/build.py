"""The Python that a project's tests run in: its requirements, pinned, and nothing of the project itself.

An environment is kept under `home/environments`, by a digest of what it is to hold, and shared by all that need the
same. It counts only once its label is written, which comes last: a builder that is killed leaves a directory that
the next one clears away. It is built where it stays, for an environment cannot be moved.
"""

import fcntl
import hashlib
import importlib.metadata
import json
import os
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
    """An interpreter, and everything that is installed there, pinned: pytest and coverage too, the project not."""

    interpreter: Path
    dependencies: tuple[str, ...]


def build_dependency_env(project: Project, home: Path, on_status: StatusCallback) -> DependencyEnv:
    """An environment with what the project and its tests need, built from wheels alone: installing runs no code.

    Raises `Refused` if that cannot be had, and `Lacking` if the package index cannot be reached. A requirement of the
    tests that has no wheel is left out and told: the tests that need it will not count.
    """
    _refuse_self_hosting(project)
    runner = _runner_pins()
    key = ("project", *runner, *project.requirements, "tests", *project.test_requirements, *_names(project))
    origin = Origin(name=project.name, version=project.version)

    def fill(interpreter: Path) -> None:
        beside = ", ".join((*project.requirements, *project.test_requirements))
        on_status(f"building an environment of pytest and coverage{beside and ', '}{beside}")
        _install_for(project, interpreter, runner, on_status)
        remove_startup_code(interpreter)
        _take_out_project(project, interpreter)

    return _kept(home, key, origin, fill)


def rebuild_dependency_env(
    dependencies: Sequence[str], origin: Origin | None, home: Path, on_status: StatusCallback
) -> DependencyEnv:
    """The environment that a task was made with, from its pinned dependencies. Raises what `build_environment` does."""

    def fill(interpreter: Path) -> None:
        on_status(f"building an environment of {len(dependencies)} pinned distributions")
        try:
            install_distributions(interpreter, dependencies, resolved=True)
        except NotInstallableError as error:
            raise ProjectRefused(
                "environment", f"{error.what} cannot be installed from a wheel here: {error.line}"
            ) from error
        remove_startup_code(interpreter)

    return _kept(home, ("pinned", *sorted(dependencies)), origin, fill)


def check_given_interpreter(project: Project, interpreter: Path) -> DependencyEnv:
    """An interpreter that somebody brings, once it is known to have pytest and not to have the project."""
    _refuse_self_hosting(project)
    answer = probe_interpreter(interpreter, _import_names(project))
    if answer.importable:
        name, place = answer.importable[0]
        raise ProjectRefused(
            "installed_copy",
            f"{interpreter} can import {name} ({place}): the answer would lie there; uninstall {project.name} from it",
        )
    return DependencyEnv(answer.interpreter, answer.dependencies)


def _refuse_self_hosting(project: Project) -> None:
    """Before anything is built: taking the project out of an environment would take the runner apart."""
    if reason := why_runner_needs(project.name, project.packages):
        raise ProjectRefused("self_hosting", reason)


def _runner_pins() -> tuple[str, ...]:
    return tuple(f"{name}=={importlib.metadata.version(name)}" for name in ("coverage", "pytest"))


def _names(project: Project) -> tuple[str, ...]:
    return ("names", *sorted(project.packages))


def _kept(home: Path, key: Sequence[str], origin: Origin | None, fill: Callable[[Path], None]) -> DependencyEnv:
    """The environment under this key: the one that is there, or a new one."""
    machine = (str(_FORMAT), sys.version, sys.base_prefix, sysconfig.get_platform(), platform.machine())
    named = (origin.name, origin.version) if origin else ()
    digest = hashlib.sha256(json.dumps([*machine, *key, *named]).encode()).hexdigest()[:32]
    place = home / "environments" / digest
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _alone(place):
            return _read(place) or _made(place, origin, fill)
    except OSError as error:
        raise write_error(Path(error.filename or place), error) from error


def _made(place: Path, origin: Origin | None, fill: Callable[[Path], None]) -> DependencyEnv:
    shutil.rmtree(place, ignore_errors=True)
    try:
        venv.EnvBuilder(symlinks=True, with_pip=False).create(place)
        interpreter = place / "bin/python"
        fill(interpreter)
        dependencies = tuple(one.pin for one in read_installed(interpreter))
        if origin:
            write_name_only_metadata(interpreter, origin)
        write_atomically(place / _LABEL, json.dumps({"dependencies": dependencies}).encode())
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return DependencyEnv(interpreter, dependencies)


def _read(place: Path) -> DependencyEnv | None:
    """None if nothing is there that counts."""
    try:
        label = json.loads((place / _LABEL).read_bytes())
        dependencies = tuple(map(str, label["dependencies"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    interpreter = place / "bin/python"
    return DependencyEnv(interpreter, dependencies) if interpreter.exists() else None


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """One builder at a time. The kernel lets go of the lock when its last holder dies: the installer inherits it, for
    it goes on writing when the builder is killed."""
    with place.with_name(f".{place.name}.lock").open("wb") as lock:
        os.set_inheritable(lock.fileno(), True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install_for(project: Project, interpreter: Path, runner: Sequence[str], tell: StatusCallback) -> None:
    """Everything as declared; else without the test requirement that is to blame; else with any version of the rest."""
    wanted: dict[str, str] = {canonicalize_name(Requirement(line).name): line for line in project.test_requirements}
    while True:
        try:
            install_distributions(interpreter, [*runner, *project.requirements, *wanted.values()])
            return
        except NotInstallableError as error:
            blamed = [name for name in error.names if name in wanted]
            bare = {name: _bare(line) for name, line in wanted.items()}
            if blamed:
                tell(f"{wanted[blamed[0]]} is left out, and with it the tests that need it: {error.line}")
                del wanted[blamed[0]]
            elif error.conflict and bare != wanted:
                tell(f"the tests get other versions than they ask for: {error.line}")
                wanted = bare
            else:
                raise ProjectRefused("environment", _not_installable(error)) from error


def _bare(line: str) -> str:
    read = Requirement(line)
    return f"{read.name}[{','.join(sorted(read.extras))}]" if read.extras else read.name


def _not_installable(error: NotInstallableError) -> str:
    return (
        f"{error.what} cannot be installed from a wheel: {error.line}; "
        "give an interpreter that has it, pytest and coverage with --python"
    )


def _take_out_project(project: Project, interpreter: Path) -> None:
    """A requirement may need the project in turn: its installed copy goes, for the workspace has one."""
    own = canonicalize_name(project.name)
    for one in read_installed(interpreter):
        if canonicalize_name(one.name) == own:
            remove_distribution(interpreter, one)
    if clash := next(_providers(project, interpreter), None):
        raise ProjectRefused(
            "self_dependency",
            f"{clash.name}, which is among the requirements, brings {', '.join(project.packages)} as well: "
            "what is tested would not be what is in the code base",
        )


def _providers(project: Project, interpreter: Path) -> Iterator[InstalledDistribution]:
    names = [name.split(".") for name in _import_names(project)]
    for one in read_installed(interpreter):
        for file in one.files:
            parts = file.parts
            if any(list(parts[: len(name)]) == name or file.as_posix() == f"{'/'.join(name)}.py" for name in names):
                yield one
                break


def _import_names(project: Project) -> tuple[str, ...]:
    """The names that only this project offers: below a namespace package, those of the packages in it."""
    found = []
    for source, name in zip(project.source_paths, project.packages, strict=True):
        if source.endswith(".py") or f"{source}/__init__.py" in project.tree:
            found.append(name)
            continue
        below = [path.removeprefix(f"{source}/") for path in project.tree if path.startswith(f"{source}/")]
        regular = {path.removesuffix("/__init__.py") for path in below if path.endswith("/__init__.py")}
        tops = {one for one in regular if not any(one.startswith(f"{other}/") for other in regular)}
        tops |= {path.removesuffix(".py") for path in below if path.endswith(".py") and "/" not in path}
        found += [f"{name}.{top.replace('/', '.')}" for top in sorted(tops)] or [name]
    return tuple(found)
