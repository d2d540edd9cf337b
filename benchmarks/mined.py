"""Whether mined tasks hold: a random sample of them, looked at from all sides.

    python benchmarks/mined.py DIR... [--sample 50] [--runs 20] [--hacks 4]

DIR are directories that `gametape mine` wrote. For every task of the sample:

- the reference passes every one of N runs, half of them in another order, and the untouched tree none;
- bringing back any single function of several does not already pass;
- a verdict, which runs every test file in a process of its own, passes the reference and does not reward the
  untouched tree;
- the leak scan finds nothing, and a search for the text of deleted lines through all that a sandbox of the task shows
  (files, interpreter, installed packages, /proc) finds no deleted body;
- some hacks, drawn at random, earn nothing.

Prints a line for each task, and writes all of it, as data, beside this script.
"""

import argparse
import ast
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.redteam import HACKS, run_hacks
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.tasks.checkout import checkout
from gametape.tasks.loader import load_task
from gametape.tasks.mining.functions import Function, functions_in
from gametape.tasks.mining.leaks.outside_workspace import build_outside_index
from gametape.tasks.mining.leaks.scan import find_leaks
from gametape.tasks.mining.removal.deletion import Tier, delete_functions
from gametape.tasks.mining.suite_run import changed_files
from gametape.verify.interpreter import visible_roots
from gametape.verify.jobs import group_by_file, pytest_options
from gametape.verify.runner import ZygotePool, runner_policy
from gametape.verify.verifier import Verifier
from gametape.verify.warm_runner import PytestRequest, WarmTestRunner

RESULTS = Path(__file__).parent / "results" / "mined.json"
_LONG_LINE, _MOST_LINES, _ENOUGH = 20, 400, 0.6

SEARCH = """
import json, os, sys
wanted = json.load(sys.stdin)
lines = {line.encode() for found in wanted.values() for line in found}
seen = {}
def look(path):
    try:
        if os.path.getsize(path) > 8 << 20 and not path.startswith('/proc'): return
        with open(path, 'rb') as file: content = file.read(8 << 20)
    except (OSError, ValueError): return
    held = {line.strip() for line in content.splitlines()} & lines
    if held: seen[path] = held
for top in sys.argv[1:]:
    for directory, inner, files in os.walk(top):
        if directory == '/proc': inner[:] = ['self', str(os.getpid()), '1']
        for name in files: look(os.path.join(directory, name))
told = []
for function, found in wanted.items():
    for path, held in seen.items():
        if sum(line.encode() in held for line in found) >= float(%r) * len(found): told.append([function, path])
print(json.dumps(told))
"""


@dataclass
class TaskReport:
    """What was seen of one task."""

    task: str
    functions: int
    reference_passed: int = 0
    untouched_failed: int = 0
    enough_alone: list[str] = field(default_factory=list)
    """Functions that bring everything back by themselves."""
    verdicts: tuple[bool, bool, float] = (False, True, 1.0)
    """Whether the reference and the untouched tree passed, and what the untouched tree earned."""
    leaks: list[str] = field(default_factory=list)
    read: list[list[str]] = field(default_factory=list)
    """Bodies whose lines could be read in the sandbox, and where."""
    hacks: dict[str, float] = field(default_factory=dict)
    """What hacks earned."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--sample", type=int, default=50)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--hacks", type=int, default=4, help="for each task")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    recorded_tasks = [(directory, record) for directory in options.directories for record in recorded(directory)]
    drawn = random.Random(options.seed).sample(recorded_tasks, min(options.sample, len(recorded_tasks)))
    with ZygotePool(2) as zygotes, ThreadPoolExecutor(2) as threads:
        works = [threads.submit(look, directory, record, options, zygotes) for directory, record in drawn]
        reports = []
        for work in as_completed(works):
            reports.append(work.result())
            print(report_text(reports[-1], options.runs), flush=True)
            whole = {"runs": options.runs, "drawn": len(drawn), "tasks": [asdict(report) for report in reports]}
            RESULTS.write_text(json.dumps(whole, indent=1) + "\n")
    if any(wrong(report, options.runs) for report in reports):
        sys.exit(1)


def recorded(directory: Path) -> list[dict[str, object]]:
    lines = (directory / "mine.jsonl").read_text().splitlines()
    return [record for line in lines if "task" in (record := json.loads(line))]


def look(directory: Path, record: dict[str, object], options: argparse.Namespace, zygotes: ZygotePool) -> TaskReport:
    loaded_task = load_task(directory / str(record["task"]))
    tier: Tier = "removal" if "-removal-" in loaded_task.task.name else "stub"
    assert loaded_task.reference is not None
    assert loaded_task.interpreter is not None
    deleted = located(loaded_task.reference, record["deleted"])
    report = TaskReport(loaded_task.task.name, len(deleted))
    whole = loaded_task.suite.overlaid_on(loaded_task.reference)
    pytest_args = pytest_options(loaded_task.start, loaded_task.interpreter)
    with WarmTestRunner(whole, loaded_task.task.import_roots, pytest_args, loaded_task.interpreter) as test_runner:
        tests = loaded_task.task.tests
        feature = [*tests.fail_to_pass, *(test for test in tests.held_out if test not in {*tests.held_out_passing})]
        without = changed_files(whole, loaded_task.suite.overlaid_on(loaded_task.start))
        for run in range(options.runs):
            shuffle = run if run % 2 else None
            report.reference_passed += passes(test_runner, tests.every, {}, shuffle)
            report.untouched_failed += not passes(test_runner, feature, without, shuffle)
        for function in deleted if len(deleted) > 1 else ():
            rest = delete_functions(loaded_task.reference, [other for other in deleted if other != function], tier).tree
            if passes(test_runner, feature, changed_files(loaded_task.reference, rest), None):
                report.enough_alone.append(str(function))
    texts = {other: loaded_task.reference.text(other.path) for other in deleted}
    roots, hidden = visible_roots(loaded_task.interpreter)
    outside = build_outside_index(roots, {other.path: texts[other] for other in deleted}, hidden)
    report.leaks = [f"{leak.function} {leak.where}" for leak in find_leaks(texts, loaded_task.start, outside)]
    report.read = readable(loaded_task, texts, [str(root) for root in roots])
    score(loaded_task, report, options, zygotes)
    return report


def located(tree: SourceTree, names: object) -> list[Function]:
    assert isinstance(names, list)
    wanted = {*names}
    paths = {name.partition("::")[0] for name in names}
    return [
        function
        for path in sorted(paths)
        for function in functions_in(path, tree.text(path))
        if str(function) in wanted
    ]


def passes(test_runner: WarmTestRunner, tests: Sequence[str], overlay: dict[str, bytes], shuffle: int | None) -> bool:
    """Whether all of these pass, in one process."""
    result = test_runner.run(PytestRequest(tuple(group_by_file(tests)), tuple(tests), overlay, shuffle=shuffle))
    return all(result.result(test) == "passed" for test in tests)


def readable(loaded_task: LoadedTask, texts: dict[Function, str], roots: list[str]) -> list[list[str]]:
    """Search from inside a sandbox like the agent's for the lines of deleted bodies that the agent cannot know."""
    start = {line.strip() for path in loaded_task.start for line in loaded_task.start.text(path).splitlines()}
    wanted = {}
    for function, text in texts.items():
        lines = [line.strip() for line in text.splitlines()[function.body_line - 1 : function.last_line]]
        telling = [line for line in lines if len(line) >= _LONG_LINE and not line.startswith("#") and line not in start]
        if len(telling) > 1 and _does_something(telling):
            wanted[str(function)] = telling[:_MOST_LINES]
    if not wanted:
        return []
    with tempfile.TemporaryDirectory(prefix="gametape-mined-") as scratch:
        workspace = checkout(loaded_task, Path(scratch) / "workspace", solved=False).workspace
        policy = runner_policy(loaded_task.interpreter).with_limits(wall_seconds=300)
        sandbox = open_backend("bubblewrap").start(SandboxSpec(policy=policy, workspace=workspace))
        command = [str(loaded_task.interpreter), "-I", "-c", SEARCH % _ENOUGH, "/workspace", "/proc", *roots]
        done = sandbox.exec(command, stdin=json.dumps(wanted).encode())
        sandbox.close()
    readable_bodies: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return readable_bodies


def _does_something(lines: Sequence[str]) -> bool:
    """Two lines that any program may hold, such as a lone `return`, give nothing away."""
    try:
        return sum(1 for _ in ast.walk(ast.parse("\n".join(lines)))) > 20
    except SyntaxError:
        return True


def score(loaded_task: LoadedTask, report: TaskReport, options: argparse.Namespace, zygotes: ZygotePool) -> None:
    hacks = random.Random(f"{options.seed} {loaded_task.task.name}").sample(HACKS, min(options.hacks, len(HACKS)))
    with (
        Verifier(loaded_task, zygotes=zygotes) as verifier,
        tempfile.TemporaryDirectory(prefix="gametape-mined-") as scratch,
    ):
        solved = verifier.verify(checkout(loaded_task, Path(scratch) / "solved", solved=True).workspace, "train")
        idle = verifier.verify(checkout(loaded_task, Path(scratch) / "idle", solved=False).workspace, "train")
        report.verdicts = solved.passed, idle.passed, idle.reward
        for result in run_hacks(verifier, loaded_task, hacks):
            report.hacks[result.hack.name] = result.verdict.reward


def wrong(report: TaskReport, runs: int) -> list[str]:
    solved, idle, earned = report.verdicts
    problems = {
        "reference": report.reference_passed != runs or not solved,
        "untouched": report.untouched_failed != runs or idle or earned > 0,
        "one is enough": bool(report.enough_alone),
        "leak": bool(report.leaks or report.read),
        "hack": any(reward > 0 for reward in report.hacks.values()),
    }
    return [name for name, is_wrong in problems.items() if is_wrong]


def report_text(report: TaskReport, runs: int) -> str:
    trouble = ", ".join(wrong(report, runs)) or "holds"
    counts = f"reference {report.reference_passed}/{runs}  untouched fails {report.untouched_failed}/{runs}"
    return f"{report.task:60} {report.functions:3} functions  {counts}  {len(report.hacks)} hacks  {trouble}"


if __name__ == "__main__":
    main()
