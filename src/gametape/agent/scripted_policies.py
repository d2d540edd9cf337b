"""Scripted policies for any task: `expert` solves it, `clumsy` makes mistakes on the way, `cheat` attacks the tests.

Demonstrations, tests and outside checks use them to show what the harness and the verifier do in each case.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence

from gametape.core.errors import BadInput
from gametape.engines.scripted import ScriptedCall, ScriptedTurn
from gametape.record.loaded_task import LoadedTask

TaskScript = Callable[[LoadedTask], list[ScriptedTurn]]
_MAX_PART = 16_000
"""Characters of a file that are written in one turn."""


def expert(task: LoadedTask) -> list[ScriptedTurn]:
    """Lists the files, writes the reference solution, runs the visible tests, and finishes."""
    return [
        _turn("I look at what is there.", "shell", command="ls -R | head -50"),
        *_solution(task),
        *_ending(task),
    ]


def clumsy(task: LoadedTask, wrong_turns: Sequence[int] = (1, 2, 3, 4, 5)) -> list[ScriptedTurn]:
    """The expert with a mistake before each of these turns, of five kinds in turn."""
    mistakes = [
        ScriptedTurn(text='```tool\n{"name": "shell", "arguments": {"command": "ls"\n```'),
        _turn("I open it.", "open_file", path="README"),
        _turn("I read it.", "read", file="README"),
        ScriptedTurn(text="I think about it."),
        _turn("I read it.", "read", path="no/such/file.py"),
    ]
    turns: list[ScriptedTurn] = []
    for number, turn in enumerate(expert(task), start=1):
        if number in wrong_turns:
            turns.append(mistakes[(number - 1) % len(mistakes)])
        turns.append(turn)
    return turns


def cheat(task: LoadedTask) -> list[ScriptedTurn]:
    """Makes every test pass without solving the task, and says that it is done."""
    passes = "import pytest\n\n@pytest.hookimpl(tryfirst=True)\ndef pytest_pyfunc_call(pyfuncitem):\n    return True\n"
    source = next((path for path in task.start if path in task.task.source_paths), None)
    early = (
        [_turn("I make it leave early.", "shell", command=_prepend(source, "import os; os._exit(0)"))] if source else []
    )
    tests = " ".join(shlex.quote(path) for path in task.task.test_paths)
    return [
        _turn("The tests are in the way.", "write", path="conftest.py", content=passes),
        _turn("I empty them.", "shell", command=f"find {tests} -name 'test_*.py' -exec truncate -s 0 {{}} +"),
        *early,
        *_ending(task),
    ]


SCRIPTED_POLICIES: Mapping[str, TaskScript] = {"expert": expert, "clumsy": clumsy, "cheat": cheat}


def _solution(task: LoadedTask) -> list[ScriptedTurn]:
    if task.reference is None:
        raise BadInput(f"{task.task.name}: has no solution, so a scripted expert cannot solve it")
    changed = [path for path, content in task.reference.files.items() if task.start.files.get(path) != content]
    removed = [path for path in task.start if path not in task.reference]
    turns = [turn for path in changed for turn in _file_turns(path, task.reference.text(path))]
    if removed:
        turns.append(_turn("I remove what is not needed.", "shell", command=f"rm -- {shlex.join(removed)}"))
    return turns


def _file_turns(path: str, content: str) -> list[ScriptedTurn]:
    """A long file is written in parts, so that no turn is longer than a model's may be."""
    first, *rest = [content[at : at + _MAX_PART] for at in range(0, len(content), _MAX_PART)] or [""]
    more = (f"printf %s {shlex.quote(part)} >> {shlex.quote(path)}" for part in rest)
    return [
        _turn(f"I write {path}.", "write", path=path, content=first),
        *(_turn(f"I go on with {path}.", "shell", command=command) for command in more),
    ]


def _ending(task: LoadedTask) -> list[ScriptedTurn]:
    tests = shlex.join(sorted({test.partition("::")[0] for test in task.task.tests.visible}))
    return [
        _turn("I run the tests.", "shell", command=f"python -m pytest -q {tests}"),
        _turn("I am done.", "finish", summary="The tests pass.", confidence=0.9),
    ]


def _prepend(path: str, line: str) -> str:
    return f"sed -i {shlex.quote('1i ' + line)} {shlex.quote(path)}"


def _turn(text: str, tool: str, **arguments: object) -> ScriptedTurn:
    return ScriptedTurn(text=text, tool_calls=[ScriptedCall(name=tool, arguments=dict(arguments))])
