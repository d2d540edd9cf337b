"""What a verdict costs: the same tests by bare pytest and by the verifier, turn by turn in one run.

Run it with `make bench`. Machines are noisy, so read the ratios; each is the median over rounds in which both sides ran
back to back. The suite is made here: six test files, about two seconds of work, a third of it about the feature. The
hand-made tasks follow. Each verdict is on another attempt: the reference with a comment that is new, so that nothing
that is kept by content helps; a wrong attempt is the start of the task with such a comment, where pytest is asked once
more about every test that needs the missing code. `a second and core` is what a second of processor time gives, of the
host and of all sandboxes, those of the reference and what is made in the background included.
`--save` writes the table to benchmarks/results/verify.json.
"""

import argparse
import contextlib
import json
import os
import platform
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from gametape.core.task import Task, TaskTests
from gametape.core.verdict import VerificationMode
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.loader import load_task
from gametape.verify import jobs
from gametape.verify.preparation import run_processes
from gametape.verify.replay.attempt import replay_attempt
from gametape.verify.replay.recording import record_tests, reference_sources
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.runner import ZygotePool
from gametape.verify.verifier import Verifier

RESULTS = Path(__file__).parent / "results" / "verify.json"
EXAMPLES = Path(__file__).parents[1] / "examples" / "tasks"
HAND_MADE = ("slugs", "durations", "warehouse", "cache-bug")
FILES, TESTS = 6, 40
VERDICTS = 40
"""How many are made to count those of a second of processor time."""
WORK = "sum(hash((n, k)) & 1 for k in range(55_000)) >= 0"
MODULE = "def double(n: int) -> int:\n    return 2 * n\n\n\ndef triple(n: int) -> int:\n    return 3 * n\n"
STUB = MODULE.replace("return 3 * n", "raise NotImplementedError")


def source_of_tests(number: int, held_out: bool = False) -> str:
    lines = ["from numbers_of import double, triple", ""]
    for test in range(TESTS // 8 if held_out else TESTS):
        name = "triple" if test % 3 == 0 or held_out else "double"
        n = 1000 * number + test + (500 if held_out else 0)
        lines += ["", f"def test_{name}_{n}():", f"    n = {n}", f"    assert {WORK}"]
        lines += [f"    assert {name}(n) == {n * (3 if name == 'triple' else 2)}", ""]
    return "\n".join(lines)


def ids(path: str, text: str) -> list[str]:
    return [f"{path}::{line[4:-3]}" for line in text.splitlines() if line.startswith("def ")]


def make_task(mode: VerificationMode = "replay") -> LoadedTask:
    visible = {f"tests/test_{number}.py": source_of_tests(number) for number in range(FILES)}
    hidden = {f"tests/test_more_{number}.py": source_of_tests(number, held_out=True) for number in range(2)}
    every = [test for path, text in visible.items() for test in ids(path, text)]
    tests = TaskTests(
        fail_to_pass=[test for test in every if "triple" in test],
        pass_to_pass=[test for test in every if "double" in test],
        held_out=[test for path, text in hidden.items() for test in ids(path, text)],
    )
    task = Task(name="bench", mode=mode, instruction="x", source_paths=["numbers_of.py"], tests=tests)
    visible_tree = SourceTree({path: text.encode() for path, text in visible.items()})
    suite = SourceTree({path: text.encode() for path, text in hidden.items()}).overlaid_on(visible_tree)
    start = SourceTree({"numbers_of.py": STUB.encode()}).overlaid_on(visible_tree)
    return LoadedTask(task, start, suite, SourceTree({"numbers_of.py": MODULE.encode()}).overlaid_on(start))


def timed(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def processor_seconds() -> float:
    """Processor time of this process and of all below it, those that have ended included."""
    ticks, parents = {}, {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    below, level = {os.getpid()}, {os.getpid()}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        below |= level
    return sum(ticks.get(pid, 0) for pid in below) / os.sysconf("SC_CLK_TCK")


class Bench:
    """The reference of a task as a workspace, verified over and over and by bare pytest."""

    def __init__(self, loaded_task: LoadedTask, directory: Path, zygotes: ZygotePool) -> None:
        self.loaded_task = loaded_task
        assert self.loaded_task.reference
        self.workspace = directory / "workspace"
        self.loaded_task.reference.write_to(self.workspace)
        self.import_path = ":".join(str(self.workspace / root) for root in loaded_task.task.import_roots)
        self.zygotes = zygotes
        self.fresh = Verifier(self.loaded_task, directory / "home", zygotes, keep_verdicts=False)
        self.caching = Verifier(self.loaded_task, directory / "home", zygotes)
        self.sources = reference_sources(loaded_task)
        self.replay_sandboxes = ReplaySandboxes()
        self.recording = record_tests(loaded_task, zygotes, self.replay_sandboxes, directory / "home")
        self.order = random.Random(1)
        self.changed = min(
            path
            for path, content in self.sources.files.items()
            if path.endswith(".py") and content != loaded_task.start.files.get(path)
        )

    def close(self) -> None:
        self.fresh.close()
        self.caching.close()
        self.replay_sandboxes.close()

    def bare(self, passes: bool = True) -> None:
        argv = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": self.import_path, "HOME": "/tmp"}
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        subprocess.run(argv, cwd=self.workspace, env=environment, capture_output=True, check=passes)

    def bare_wrong(self) -> None:
        self.bare(passes=False)

    def first_run(self) -> None:
        prepared = self.fresh.prepared()
        suite = jobs.visible_tests(self.loaded_task)
        processes = jobs.plan_processes(
            "visible", suite, self.loaded_task.task.tests.visible, prepared.file_seconds, messages=True
        )
        assert run_processes(prepared, self.sources, self.zygotes, suite, processes).done

    def replay(self) -> None:
        replayed = replay_attempt(
            self.recording, self.loaded_task, self.sources, self.replay_sandboxes, self.zygotes, self.order
        )
        assert {outcome.result for outcome in replayed.outcomes.values()} == {"passed"}
        assert not replayed.live

    def another_attempt(self, wrong: bool = False) -> None:
        """Make the workspace one that was never verified."""
        files = self.loaded_task.start.files if wrong else self.sources.files
        note = f"# {secrets.token_hex(8)}\n".encode()
        (self.workspace / self.changed).write_bytes(files[self.changed] + note)

    def another_wrong_attempt(self) -> None:
        self.another_attempt(wrong=True)

    def train(self) -> None:
        assert self.fresh.verify(self.workspace, "train").passed

    def train_wrong(self) -> None:
        assert not self.fresh.verify(self.workspace, "train").passed

    def full(self) -> None:
        assert self.fresh.verify(self.workspace, "full").passed

    def verdicts_per_core(self, count: int, wrong: bool = False) -> float:
        """Train verdicts for a second of processor time, one after the other, once everything is warm."""
        before = processor_seconds()
        for _ in range(count):
            self.another_attempt(wrong)
            (self.train_wrong if wrong else self.train)()
        return count / (processor_seconds() - before)

    def cached(self) -> None:
        assert self.caching.verify(self.workspace, "full").cached


def compare(
    name: str,
    bare: Callable[[], None],
    other: Callable[[], None],
    rounds: int,
    goal: str,
    dropped: int = 1,
    renew: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Both turn by turn, after `renew`, which is not timed."""
    pairs = []
    for _ in track(range(rounds + dropped), description=name, console=Console(stderr=True), transient=True):
        renew()
        time.sleep(1.0)  # the next zygotes get warm
        pairs.append((timed(bare), timed(other)))
    del pairs[:dropped]
    return {
        "what": name,
        "bare_ms": round(1000 * statistics.median(base for base, _ in pairs), 1),
        "verifier_ms": round(1000 * statistics.median(other for _, other in pairs), 1),
        "ratio": round(statistics.median(other / base for base, other in pairs), 3),
        "goal": goal,
    }


def throughput(bench: Bench, rounds: int) -> dict[str, Any]:
    """Eight verdicts one after the other, and eight at once."""

    def one_by_one() -> None:
        for _ in range(8):
            bench.train()

    def at_once() -> None:
        with ThreadPoolExecutor(8) as threads:
            for verdict in [threads.submit(bench.train) for _ in range(8)]:
                verdict.result()

    row = compare("8 verdicts at once, against one by one", one_by_one, at_once, rounds, "<= 1.1", dropped=0)
    return {**row, "bare_ms": row["bare_ms"] / 8, "verifier_ms": row["verifier_ms"] / 8}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, ZygotePool(size=6) as zygotes:
        bench = Bench(make_task(), Path(directory) / "made", zygotes)
        shared = Bench(make_task("shared"), Path(directory) / "shared", zygotes)
        shared.train()
        bench.full()
        bench.caching.verify(bench.workspace, "full")
        rows = [
            compare("first run of the tests, warm", bench.bare, bench.first_run, options.rounds, "<= 1"),
            compare("verdict, cached", bench.bare, bench.cached, options.rounds, "< 5 ms"),
            compare("tests by replay", bench.bare, bench.replay, options.rounds, "<= 0.2"),
            compare("verdict, train", bench.bare, bench.train, options.rounds, "<= 0.2", renew=bench.another_attempt),
            compare(
                "verdict, train, shared mode",
                bench.bare,
                shared.train,
                options.rounds,
                "<= 2",
                renew=shared.another_attempt,
            ),
            compare("verdict, full", bench.bare, bench.full, options.rounds, "<= 4", renew=bench.another_attempt),
            throughput(bench, max(1, options.rounds // 3)),
        ]
        shared.close()
        bench.close()
        for name in HAND_MADE:
            example = Bench(load_task(EXAMPLES / name), Path(directory) / name, zygotes)
            rows.append(compare(f"{name}: tests by replay", example.bare, example.replay, options.rounds, "<= 50 ms"))
            row = compare(
                f"{name}: verdict, train",
                example.bare,
                example.train,
                options.rounds,
                "<= 50 ms, >= 20 a second and core",
                dropped=3,
                renew=example.another_attempt,
            )
            rows.append({**row, "per_core_second": round(example.verdicts_per_core(VERDICTS), 1)})
            row = compare(
                f"{name}: verdict, train, wrong",
                example.bare_wrong,
                example.train_wrong,
                options.rounds,
                "",
                renew=example.another_wrong_attempt,
            )
            rows.append({**row, "per_core_second": round(example.verdicts_per_core(VERDICTS // 4, wrong=True), 1)})
            example.close()
    table = Table("what", "bare ms", "verifier ms", "ratio", "a second and core", "goal", box=None)
    for row in rows:
        numbers = (
            str(round(row[key], 3)) if key in row else ""
            for key in ("bare_ms", "verifier_ms", "ratio", "per_core_second")
        )
        table.add_row(row["what"], *numbers, row["goal"])
    Console().print(table)
    if options.save:
        machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
        RESULTS.write_text(json.dumps({"machine": machine, "rounds": options.rounds, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
