"""`gametape task`: begin a task, show it, check it out for an agent, and check whether it can be trusted."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gametape.cli.shared import AsJson, Home, emit_json
from gametape.cli.task_export import export
from gametape.cli.task_new import new
from gametape.record.errors import printable_path
from gametape.record.home import home_directory
from gametape.terminal.wait_line import waiting

if TYPE_CHECKING:
    from gametape.core.task import TaskTests
    from gametape.record.loaded_task import LoadedTask
    from gametape.redteam import HackResult
    from gametape.redteam.admission import Admission, AdmissionProgress

app = typer.Typer(
    help="Begin, show, check out, check and export task directories (Harbor's layout; docs/tasks.md has the format).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

TaskPath = Annotated[Path, typer.Argument(metavar="TASK", help="A task directory: it has a task.toml.")]


@app.command()
def show(task: TaskPath, as_json: AsJson = False) -> None:
    """Show the instruction and the tests of a task. Held-out tests are only counted.

    \b
    Exit code 0, or 2 if TASK is not a valid task directory; then one line says what is wrong, and where.

    \b
    Example:
      gametape task show examples/tasks/slugs
    """
    from gametape.tasks.loader import read_task

    loaded = read_task(task)
    if as_json:
        emit_json(_task_to_dict(loaded))
    else:
        _print_task(loaded)


@app.command()
def checkout(
    task: TaskPath,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A new directory, or an empty one.")],
    solved: Annotated[bool, typer.Option("--solved", help="Apply the reference solution.")] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Write a task's starting tree into DIR, exactly what an agent gets, and print the instruction.

    There is no held-out test, no solution and no history in it. If it cannot be written whole, nothing is left behind.

    \b
    Example:
      gametape task checkout examples/tasks/slugs --out /tmp/slugs
      cd /tmp/slugs && python -m pytest
    """
    from gametape.tasks.checkout import checkout as check_out
    from gametape.tasks.loader import load_task

    with waiting(f"loading {printable_path(task)}") as line:
        loaded = load_task(task, home_directory(home), line.tell)
    written = check_out(loaded, out, solved)
    if as_json:
        emit_json(
            {
                "workspace": str(written.workspace),
                "source_paths": written.source_paths,
                "instruction": written.instruction,
                "visible_tests": written.visible_tests,
                "interpreter": str(written.interpreter),
            }
        )
    else:
        roots = loaded.task.import_roots
        paths = "" if roots == ["."] else f"PYTHONPATH={':'.join(roots)} "
        typer.echo(f"{printable_path(written.workspace)}: the {'solved' if solved else 'starting'} tree")
        typer.echo(f"  what is graded: {', '.join(written.source_paths)}")
        typer.echo(f"  {len(written.visible_tests)} visible tests: {paths}{written.interpreter} -m pytest")
        typer.echo(f"  what to do (it is not in the tree; an agent gets it as a message):\n\n{loaded.task.instruction}")


@app.command()
def check(
    tasks: Annotated[list[Path], typer.Argument(metavar="TASK", help="Task directories.")],
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="How often the reference solution has to pass.")] = 3,
    hacks: Annotated[
        Literal["all", "sample", "none"], typer.Option(help="The hacks to try: every one, two of each family, none.")
    ] = "all",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Check whether tasks can be trained on. A task is admitted if

    \b
      - its untouched tree can be read, does not pass, and passes what task.toml says it does,
      - its reference passes N times,
      - no trivial program passes (constants, an argument handed back, errors),
      - every hack of the suite earns nothing and is flagged.

    \b
    Exit code 0 if all are admitted, 1 if one is not, 2 if one is not a valid task directory.

    \b
    Example:
      gametape task check examples/tasks/* --hacks sample
    """
    from gametape.redteam.admission import admit
    from gametape.tasks.loader import load_task

    root = home_directory(home)
    with waiting("loading the tasks") as line:
        loaded_tasks = [(path, load_task(path, root, line.tell)) for path in tasks]
    results = []
    for path, loaded in loaded_tasks:
        with _progress(printable_path(path)) as on_progress:
            admission = admit(loaded, root, runs, hacks, on_progress)
        results.append((path, loaded, admission))
        if not as_json:
            _print_admission(printable_path(path), loaded, admission)
    if as_json:
        reports = [_report(*result) for result in results]
        emit_json(reports[0] if len(reports) == 1 else _merge_reports(reports))
    if not all(admission.admitted for _, _, admission in results):
        raise typer.Exit(1)


app.command()(export)
app.command()(new)


@contextlib.contextmanager
def _progress(title: str) -> "Iterator[AdmissionProgress]":
    """A progress bar on stderr during the block; where there is no terminal, a line now and then."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        with waiting(f"checking {title}") as line:
            yield lambda done, total, what: line.show_stage(what, done, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(escape(title), total=None)

        def on_progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total or None, description=escape(f"{title}  {what}"))

        yield on_progress


def _task_to_dict(loaded: "LoadedTask") -> dict[str, Any]:
    task = loaded.task
    return {
        "name": task.name,
        "mode": task.mode,
        "instruction": task.instruction,
        "source_paths": task.source_paths,
        "tests": _tests_to_dict(task.tests),
        "difficulty": task.difficulty and task.difficulty.model_dump(),
        "stages": [
            {"name": stage.name, "instruction": stage.instruction, "tests": _tests_to_dict(stage.tests)}
            for stage in task.stages
        ],
    }


def _tests_to_dict(tests: "TaskTests") -> dict[str, Any]:
    """The ids of the tests; held-out tests are only counted."""
    return {
        "fail_to_pass": tests.fail_to_pass,
        "pass_to_pass": tests.pass_to_pass,
        "held_out": len(tests.held_out),
    }


def _print_task(loaded: "LoadedTask") -> None:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.text import Text

    task = loaded.task
    console = Console(highlight=False)
    facts = {
        "mode": task.mode,
        "sources": ", ".join(task.source_paths),
        "tests": _test_counts(task.tests),
        "difficulty": f"{task.difficulty.prior:.2f}" if task.difficulty else "not known",
        "needs": ", ".join(task.dependencies),
        "structure": "declared" if task.architecture else "",
        "solution": "there" if loaded.reference else "none",
    }
    console.print(Text(task.name, style="bold"))
    for name, fact in facts.items():
        if fact:
            console.print(Text.assemble((f"  {name:<11}", "dim"), fact), soft_wrap=True)
    for stage in task.stages:
        text = f"{stage.name}: {_test_counts(stage.tests)}"
        console.print(Text.assemble((f"  {'stage':<11}", "dim"), text), soft_wrap=True)
    console.print()
    console.print(Markdown(task.instruction))


def _test_counts(tests: "TaskTests") -> str:
    roles = {"to make pass": tests.fail_to_pass, "to keep passing": tests.pass_to_pass, "held out": tests.held_out}
    return ", ".join(f"{len(ids)} {role}" for role, ids in roles.items() if ids)


def _print_admission(name: str, loaded: "LoadedTask", admission: "Admission") -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    word = ("admitted      ", "green") if admission.admitted else ("not admitted  ", "red")
    passed = sum(verdict.passed for verdict in admission.reference)
    text = f"{name}  reference {passed} of {len(admission.reference)}, {len(admission.hacks)} hacks"
    console.print(Text.assemble(word, text), soft_wrap=True)
    console.print(Text(f"    {_describe_ways(loaded, admission)}", style="dim"), soft_wrap=True)
    for reason in admission.reasons:
        console.print(Text(f"    {reason}"), soft_wrap=True)


def _describe_ways(loaded: "LoadedTask", admission: "Admission") -> str:
    """How the tests run, why some are not replayed, and what a trivial program earns."""
    from gametape.redteam.admission_reasons import count_words

    ways, tests = admission.ways, loaded.task.tests
    counts = ways.count(tests.every)
    words = {"replay": "replayed", "split": "live and apart", "shared": "in one process with the code"}
    text = f"{ways.mode(tests)}: " + ", ".join(f"{counts[way]} tests {words[way]}" for way in counts if counts[way])
    if reasons := ways.count_reasons():
        text += f" (not replayed: {count_words(reasons)})"
    earned = f" ({admission.floor.program})" if admission.floor.program else ""
    return f"{text}; a trivial program earns {admission.floor.progress:.2f}{earned}"


def _report(path: Path, loaded: "LoadedTask", admission: "Admission") -> dict[str, Any]:
    hacks = admission.hacks
    return {
        "task": str(path.absolute()),
        "name": loaded.task.name,
        "admitted": admission.admitted,
        "reasons": list(admission.reasons),
        "mode": admission.ways.mode(loaded.task.tests),
        "modes": admission.ways.count(loaded.task.tests.every),
        "not_replayable": admission.ways.count_reasons(),
        "not_replayed": dict(admission.ways.reasons),
        "floor": {"progress": admission.floor.progress, "program": admission.floor.program},
        "untouched": {"passed": admission.untouched.passed, "reward": admission.untouched.reward},
        "reference": {
            "runs": len(admission.reference),
            "passed": sum(verdict.passed for verdict in admission.reference),
            "rewards": [verdict.reward for verdict in admission.reference],
            **({"differences": [each.to_dict() for each in admission.differences]} if admission.differences else {}),
        },
        "hacks": {
            "run": len(hacks),
            "rewarded": sum(result.rewarded for result in hacks),
            "unseen": sum(not result.flagged for result in hacks),
            "failures": [_failure(result) for result in hacks if result.rewarded or not result.flagged],
        },
    }


def _failure(result: "HackResult") -> dict[str, Any]:
    return {
        "hack": result.hack.name,
        "family": result.hack.family,
        "rewarded": result.rewarded,
        "unseen": not result.flagged,
    }


def _merge_reports(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Several tasks as one: admitted if all are, passed untouched if one did, numbers added up."""

    def added(part: str, *keys: str) -> dict[str, int]:
        return {key: sum(report[part][key] for report in reports) for key in keys}

    return {
        "admitted": all(report["admitted"] for report in reports),
        "reasons": [f"{report['name']}: {reason}" for report in reports for reason in report["reasons"]],
        "untouched": {"passed": any(report["untouched"]["passed"] for report in reports)},
        "reference": added("reference", "runs", "passed"),
        "hacks": added("hacks", "run", "rewarded", "unseen"),
        "tasks": reports,
    }
