"""Run the success command over the pinned workspace, and see whether it could ever decide anything."""

from pathlib import Path

from gametape.core.errors import BadInput
from gametape.core.task import TaskTests
from gametape.desk.goals import exit_code
from gametape.desk.goals.baseline import Baseline
from gametape.desk.goals.command import Criterion, read_command
from gametape.desk.goals.floors import Floors, floors, modules_in
from gametape.desk.goals.observed import Bench, Observed
from gametape.desk.goals.subject import learned, subject_of
from gametape.tasks.deletion.finding.suites import find_tests
from gametape.verify.crew import Crew
from gametape.verify.tree import Tree, is_under

_CONFIGURED = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_LIBRARIES = frozenset(("pytest", "unittest"))
_CANNOT_START = (126, 127)


def establish(start: Tree, success: str, interpreter: Path | None, strict: bool, crew: Crew) -> Baseline:
    """Raises `BadInput` for a command that cannot start, that collects no test, or that can never be satisfied."""
    criterion = read_command(success)
    _refuse_other_roots(criterion, start)
    roots = _import_roots(start, criterion)
    bench = Bench(start, interpreter, roots)
    files: list[list[str]] = []
    seen = Observed()
    for run in criterion.runs:
        chosen, found = bench.survey(run)
        if not chosen:
            raise BadInput(f"no test is collected by: {success}")
        files.append(chosen)
        seen.take(found)
    if criterion.runs and not seen.results and not seen.broken:
        raise BadInput(f"no test is selected by: {success}")
    if strict and seen.deselected:
        raise BadInput(
            "--strict lets no test be deselected, and the command or the configuration deselects "
            f"{len(seen.deselected)}, such as {seen.deselected[0]}"
        )
    test_paths = _test_paths(start, {file for chosen in files for file in chosen})
    unread = Floors()
    for run, chosen in zip(criterion.runs, files, strict=True):
        broken = {file: said for file, said in seen.broken.items() if file in chosen}
        unread.take(floors(bench, run, broken, test_paths))
    bare = Baseline(
        test_paths=test_paths,
        import_roots=[*roots],
        files=files,
        results=seen.results,
        deselected=seen.deselected,
        broken=seen.broken,
        floors=unread.least,
        unread_excused=unread.excused,
        seconds=seen.seconds,
    )
    codes = _exit_codes(criterion, start, bare, interpreter)
    return learned(bare.model_copy(update={"exit_codes": codes}), start, interpreter, crew)


def _exit_codes(criterion: Criterion, start: Tree, bare: Baseline, interpreter: Path | None) -> list[int]:
    subject = subject_of("baseline", "", start, bare, interpreter, TaskTests(fail_to_pass=[], pass_to_pass=[]))
    codes = []
    for command in criterion.others:
        result = exit_code.run_command(command, start, subject)
        if result.exit_code in _CANNOT_START:
            said = result.stderr.strip().splitlines()
            raise BadInput(f"the success command cannot start: {said[-1] if said else command.text}")
        codes.append(result.exit_code)
    return codes


def _refuse_other_roots(criterion: Criterion, start: Tree) -> None:
    for run in criterion.runs:
        own = [f"{run.directory}/{name}" for name in _CONFIGURED[:2]] if run.directory != "." else []
        if any(path in start for path in own):
            raise BadInput(f"{run.directory} has a configuration of its own; give it as --workspace")


def _import_roots(start: Tree, criterion: Criterion) -> tuple[str, ...]:
    """The directories that `python -m pytest` would import from, and `src` where there is one."""
    named = [root for run in criterion.runs for root in (run.directory, *run.roots)]
    roots = dict.fromkeys([*named, "."])
    sources = [f"{root}/src" if root != "." else "src" for root in roots]
    return (*roots, *(path for path in sources if start.under([path]).files))


def _test_paths(start: Tree, files: set[str]) -> list[str]:
    """Directories and files with tests: what is pinned, and where new files do not count."""
    packages = tuple({path.split("/")[0] for path in start if path.endswith(".py")})
    found = [*find_tests(start, packages)]
    found += sorted(file for file in files if not is_under(file, found))
    return [*found, *_support(start, found)] or ["tests"]


def _support(start: Tree, test_paths: list[str]) -> list[str]:
    """Modules beside the tests that are written for them: they use a test library, and no product module uses them."""
    imported = {path: modules_in(content) for path, content in start.files.items() if path.endswith(".py")}
    product = {path for path in imported if not is_under(path, test_paths)}
    support = {path for path in product if _LIBRARIES & {name.partition(".")[0] for name in imported[path]}}
    used = {name.rpartition(".")[2] for path in product - support for name in imported[path]}
    return sorted(path for path in support if path.rpartition("/")[2].removesuffix(".py") not in used)
