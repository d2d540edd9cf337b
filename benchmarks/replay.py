"""How much of what is mined rests on replay, and what fresh inputs tell that tests do not.

    python benchmarks/replay.py --out DIR [--limit N] [--mutants N] [--save] [PACKAGE...]

Mines each package as `benchmarks/yields.py` does, then, for every task:

- records its tests against the reference: which of them can be replayed, and the reasons why others cannot. A task
  can be replayed if half of the feature's visible tests and half of its held-out ones can;
- draws fresh calls, and counts what a verdict gets;
- makes mutants of each function that the task asks for: how many the tests that need it tell, and how many of the
  others fresh calls tell. A mutant that behaves like the original counts as one that nothing tells.

A task that is finished is not measured again, so it can be interrupted. Prints a line for each task and a table;
`--save` writes the table, as data, beside this script; packages that are measured there already and not named stay.
"""

import argparse
import json
import os
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from gametape.record.atomic import write_atomically
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.loader import load_task
from gametape.tasks.mining.functions import Function, functions_in
from gametape.tasks.mining.mutation.generator import function_mutations
from gametape.verify.fresh.judge import FreshJudge
from gametape.verify.jobs import group_by_file, pytest_options
from gametape.verify.missing_functions import find_missing_functions
from gametape.verify.replay.recording import Recording, record_tests, reference_sources
from gametape.verify.replay.replayer import Replayer
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.result_counts import feature_tests
from gametape.verify.runner import ZygotePool
from gametape.verify.test_ways import choose_ways
from gametape.verify.warm_runner import PytestRequest, WarmTestRunner
from yields import PACKAGES as MINED_PACKAGES
from yields import fetched, mined

PACKAGES = tuple(package for package in MINED_PACKAGES if not package.startswith(("cachetools", "marshmallow")))
RESULTS = Path(__file__).parent / "results" / "replay.json"
_SETS = 2
"""Sets of fresh calls that a mutant is asked: what two verdicts would ask."""
_FILE_SECONDS, _SILENT_SECONDS = 15.0, 45.0
"""Processor time of a test file, and seconds by the clock without a result: a mutant that takes longer hangs."""
_FIRST = 3
"""Tests that differ in a replay of which pytest is asked first: mostly they fail."""


@dataclass
class FunctionRow:
    """The mutants of one function."""

    function: str
    mutants: int = 0
    told_by_tests: int = 0
    told_by_fresh: int = 0
    only_by_fresh: int = 0
    """Told by fresh calls, and not by the tests."""


@dataclass
class TaskRow:
    """What was found for one task."""

    task: str
    mode: str
    tests: int
    replayed: int
    live: int
    reasons: dict[str, int]
    """Why tests are not replayed, counted."""
    examples: dict[str, str]
    """For each reason, what one test said."""
    fresh_calls: int
    seconds: float
    functions: list[FunctionRow] = field(default_factory=list)


def main() -> None:
    options = parse_options(sys.argv[1:])
    packages: dict[str, list[dict[str, Any]]] = json.loads(RESULTS.read_text())["packages"] if options.save else {}
    for package in options.packages:
        packages[package] = [measured(directory, options) for directory in task_directories(package, options)]
        print(package_text(package, packages[package]), flush=True)
    summary = summarized([row for rows in packages.values() for row in rows])
    for label, value in summary.items():
        print(f"{label:32} {value}")
    if options.save:
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()}
        RESULTS.write_text(json.dumps({"machine": machine, "summary": summary, "packages": packages}, indent=1) + "\n")


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE", help="a pinned requirement")
    parser.add_argument("--out", type=Path, required=True, help="where tasks and results of each package go")
    parser.add_argument("--limit", type=int, default=6, help="tasks for each package (default: 6)")
    parser.add_argument("--mutants", type=int, default=30, help="mutants of each function (default: 30)")
    parser.add_argument("--functions", type=int, default=3, help="functions of each task (default: 3)")
    parser.add_argument("--sdists", type=Path, help="sdists that are there already")
    parser.add_argument("--tasks", type=Path, help="tasks that are mined already: a directory for each package")
    parser.add_argument("--home", type=Path, help="where recordings are kept (default: below --out)")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} beside this script")
    return parser.parse_args(arguments)


def task_directories(package: str, options: argparse.Namespace) -> list[Path]:
    """The mined tasks of a package; mines them if they are not given."""
    name = package.partition("==")[0]
    directory: Path = (options.tasks or options.out) / name
    if not options.tasks:
        sdist = fetched(package, options.sdists or options.out / "sdists")
        mined(sdist, directory, "--limit", str(options.limit), "--home", str(home_of(options)))
    return sorted(path.parent for path in directory.glob("*/task.toml"))[: options.limit]


def home_of(options: argparse.Namespace) -> Path:
    """Where mining keeps the recordings that are measured."""
    home: Path = options.home or options.out / "home"
    return home


def measured(directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What was found for a task, from an earlier run if there was one."""
    stored: Path = options.out / "measured" / directory.parent.name / f"{directory.name}.json"
    if not stored.exists():
        row = measure_task(load_task(directory), home_of(options), options.mutants, options.functions)
        print(row_text(row), flush=True)
        stored.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(stored, json.dumps(asdict(row), indent=1).encode() + b"\n")
    found: dict[str, Any] = json.loads(stored.read_text())
    return found


def measure_task(loaded_task: LoadedTask, home: Path, mutants: int, functions: int) -> TaskRow:
    """Record, draw and mutate one task."""
    began = time.monotonic()
    with ZygotePool() as zygotes, ReplaySandboxes() as sandboxes:
        recording = record_tests(loaded_task, zygotes, sandboxes, home)
        with FreshJudge([*recording.transcripts.values()], loaded_task, sandboxes, seed=0) as judge:
            row = TaskRow(
                task=loaded_task.task.name,
                mode=choose_ways(loaded_task.task, recording).mode(loaded_task.task.tests),
                tests=len(loaded_task.task.tests.every),
                replayed=len(recording.transcripts),
                live=len(recording.live),
                reasons=dict(Counter(reason.word for reason in recording.reasons.values())),
                examples={reason.word: f"{test}: {reason.detail}" for test, reason in recording.reasons.items()},
                fresh_calls=judge.ready(),
                seconds=0.0,
            )
            for function in wanted_functions(loaded_task)[:functions]:
                row.functions.append(measure_function(loaded_task, recording, sandboxes, judge, function, mutants))
    row.seconds = round(time.monotonic() - began, 1)
    return row


def wanted_functions(loaded_task: LoadedTask) -> list[Function]:
    """The functions that the task asks for, as the reference has them."""
    assert loaded_task.reference is not None
    asked = {(function.path, function.node.lineno) for function in find_missing_functions(loaded_task)}
    return [
        function
        for path in sorted({path for path, _ in asked})
        for function in functions_in(path, loaded_task.reference.text(path))
        if (path, function.line) in asked
    ]


def measure_function(
    loaded_task: LoadedTask,
    recording: Recording,
    sandboxes: ReplaySandboxes,
    judge: FreshJudge,
    function: Function,
    mutants: int,
) -> FunctionRow:
    """Ask the tests and fresh calls about mutants of one function."""
    assert loaded_task.reference is not None
    row = FunctionRow(function.name)
    rng = random.Random(function.name)
    reference = reference_sources(loaded_task)
    calls = [call for number in range(_SETS) for call in judge.draw(number)]
    with test_runner(loaded_task) as runner:
        for mutation in islice(function_mutations(reference.text(function.path), function, rng), mutants):
            sources = SourceTree({function.path: mutation.source.encode()}).overlaid_on(reference)
            by_tests = told_by_tests(loaded_task, recording, sandboxes, runner, sources, function.path)
            fresh = judge.ask(sources, calls)
            by_fresh = fresh.agreed < fresh.calls
            row.mutants += 1
            row.told_by_tests += by_tests
            row.told_by_fresh += by_fresh
            row.only_by_fresh += by_fresh and not by_tests
    return row


def test_runner(loaded_task: LoadedTask) -> WarmTestRunner:
    """Plain pytest over the reference, for tests that replay does not decide."""
    assert loaded_task.reference is not None
    interpreter = loaded_task.interpreter or Path(sys.executable)
    options = pytest_options(loaded_task.start, loaded_task.interpreter)
    tree = loaded_task.suite.overlaid_on(loaded_task.reference)
    return WarmTestRunner(tree, loaded_task.task.import_roots, options, interpreter)


def told_by_tests(
    loaded_task: LoadedTask,
    recording: Recording,
    sandboxes: ReplaySandboxes,
    runner: WarmTestRunner,
    sources: SourceTree,
    path: str,
) -> bool:
    """Whether one of the feature's tests fails. The others pass without the function, so they do not ask it."""
    tests = feature_tests(loaded_task.task.tests)
    scripts = [recording.scripts[test] for test in tests if test in {*recording.scripts} - recording.isolated]
    with Replayer(loaded_task, sources, sandboxes) as replayer:
        results = replayer.replay(scripts)
    if any(result.timed_out for result in results):
        return True
    differing = [result.test for result in results if not result.same]
    unknown = [test for test in tests if test not in {result.test for result in results}]
    laid = {path: sources.files[path]}
    return any(one_fails(runner, laid, part) for part in (differing[:_FIRST], differing[_FIRST:], unknown))


def one_fails(runner: WarmTestRunner, laid: dict[str, bytes], tests: Sequence[str]) -> bool:
    """Whether pytest says of one of these tests that it does not pass: what differs in a replay may pass for a test."""
    for file, some in group_by_file(tests).items():
        result = runner.run(PytestRequest((file,), some, laid, seconds=_FILE_SECONDS, silence=_SILENT_SECONDS))
        if any(result.result(test) != "passed" for test in some):
            return True
    return False


def summarized(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything in a few figures."""
    functions = [function for row in rows for function in row["functions"] if function["mutants"]]
    mutants = sum(function["mutants"] for function in functions)
    untold = mutants - sum(function["told_by_tests"] for function in functions)
    with_fresh = [row["fresh_calls"] for row in rows if row["mode"] == "replay"]
    return {
        "tasks": len(rows),
        "tasks by replay": share(sum(row["mode"] == "replay" for row in rows), len(rows)),
        "tasks by split": share(sum(row["mode"] == "split" for row in rows), len(rows)),
        "tests": sum(row["tests"] for row in rows),
        "tests by replay": share(sum(row["replayed"] for row in rows), sum(row["tests"] for row in rows)),
        "reasons for the rest": dict(sum((Counter(row["reasons"]) for row in rows), Counter()).most_common()),
        "fresh calls, median": sorted(with_fresh)[len(with_fresh) // 2] if with_fresh else 0,
        "tasks by replay without fresh": sum(calls == 0 for calls in with_fresh),
        "functions": len(functions),
        "mutants": mutants,
        "told by tests": share(mutants - untold, mutants),
        "told by fresh": share(sum(function["told_by_fresh"] for function in functions), mutants),
        "only by fresh": share(sum(function["only_by_fresh"] for function in functions), mutants),
        "only by fresh, of untold": share(sum(function["only_by_fresh"] for function in functions), untold),
        "functions with such a mutant": share(sum(f["only_by_fresh"] > 0 for f in functions), len(functions)),
    }


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "none"


def row_text(row: TaskRow) -> str:
    mutants = sum(function.mutants for function in row.functions)
    tests, fresh = (sum(getattr(f, name) for f in row.functions) for name in ("told_by_tests", "only_by_fresh"))
    return (
        f"  {row.task[:56]:56} {row.mode:6} {row.replayed:4} of {row.tests:4} tests {row.fresh_calls:3} fresh  "
        f"{mutants:3} mutants, tests tell {tests:3}, fresh {fresh:2} more  {row.seconds:5.0f} s  {row.reasons or ''}"
    )


def package_text(package: str, rows: list[dict[str, Any]]) -> str:
    replayed = sum(row["mode"] == "replay" for row in rows)
    return f"{package:20} {replayed} of {len(rows)} tasks by replay"


if __name__ == "__main__":
    main()
