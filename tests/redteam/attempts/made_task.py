"""Small tasks by replay that attempts bring with them."""

from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from tests.redteam.attempts.attempt import Attempt, files


def replayed_task(name: str, module: str, start: str, solved: str, visible: str, held_out: str) -> LoadedTask:
    """A task by replay of one module; every test of `visible` and `held_out` fails at the start."""
    tests = {f"tests/test_{module}.py": visible.encode(), f"tests/test_{module}_more.py": held_out.encode()}
    suite = SourceTree(tests)
    task = Task(
        name=name,
        mode="replay",
        instruction=f"Complete {module}.py.",
        source_paths=[f"{module}.py"],
        tests=TaskTests(
            fail_to_pass=_ids(f"tests/test_{module}.py", visible),
            pass_to_pass=[],
            held_out=_ids(f"tests/test_{module}_more.py", held_out),
        ),
    )
    begin = SourceTree({f"{module}.py": start.encode(), f"tests/test_{module}.py": visible.encode()})
    return LoadedTask(task, begin, suite, SourceTree({**begin.files, f"{module}.py": solved.encode()}))


def _ids(path: str, text: str) -> list[str]:
    return [f"{path}::{line[4:].partition('(')[0]}" for line in text.splitlines() if line.startswith("def test")]


def on_made_task(name: str, sentence: str, task: str, text: str) -> Attempt:
    """An attempt on such a task, which has one module."""
    return Attempt(f"replay.{name}", sentence, task, files(**{f"{task}_dot_py": text}))
