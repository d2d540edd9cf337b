"""A new task that checks as it is: a tiny example with every part of a task, made to be edited."""

import keyword
import re
import sys
import tomllib
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.atomic_directory import atomic_directory
from gametape.tasks.writer import write_task

_MODULE = "MODULE"
_NOT_MODULES = {"tests", "test", "conftest", "pytest"}

INSTRUCTION = """\
# Join words as one writes them

`MODULE.py` has a function `split_words` that works, and a stub `join_words`. Write `join_words`: it takes a list of
words and returns one text.

- One word is the text.
- Two words are joined by ` and `: `["tea", "milk"]` gives `"tea and milk"`.
- Of more words the last two are joined by ` and `, and all others by `, `: `["a", "b", "c"]` gives `"a, b and c"`.
- Without any word it raises `ValueError`.

Do not change `split_words`.
"""

START = '''\
"""Words and how they are joined."""


def split_words(text: str) -> list[str]:
    """The words of a text, split at white space."""
    return text.split()


def join_words(words: list[str]) -> str:
    """The words as one writes them: `a, b and c`."""
    raise NotImplementedError
'''

REFERENCE = '''\
"""Words and how they are joined."""


def split_words(text: str) -> list[str]:
    """The words of a text, split at white space."""
    return text.split()


def join_words(words: list[str]) -> str:
    """The words as one writes them: `a, b and c`."""
    if not words:
        raise ValueError("there are no words to join")
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
'''

VISIBLE = """\
import pytest

from MODULE import join_words, split_words


def test_two_words_are_joined_by_and():
    assert join_words(["tea", "milk"]) == "tea and milk"


def test_others_are_joined_by_commas():
    assert join_words(["a", "b", "c"]) == "a, b and c"


def test_no_words_are_an_error():
    with pytest.raises(ValueError):
        join_words([])


def test_words_are_split_at_white_space():
    assert split_words(" tea  milk ") == ["tea", "milk"]
"""

HELD_OUT = """\
from MODULE import join_words


def test_one_word_is_the_text():
    assert join_words(["salt"]) == "salt"


def test_two_other_words():
    assert join_words(["north", "south"]) == "north and south"


def test_five_words():
    assert join_words(["red", "green", "blue", "white", "black"]) == "red, green, blue, white and black"


def test_words_may_have_spaces():
    assert join_words(["New York", "Los Angeles", "San Francisco"]) == "New York, Los Angeles and San Francisco"
"""

TASK_TOML = """\
# A task in Harbor's layout. `gametape task check` says what is wrong with it; docs/tasks.md has every key.
schema_version = "1.4"

[task]
name = NAME             # owner/name: how results call it
description = "Join words as one writes them."
keywords = ["text", "function"]

[metadata.gametape]     # what gametape adds to Harbor's format
# How tests may run. replay: each in the strongest way it can; recorded calls are replayed, and the code meets no
# expected value. split: all replayed or live, never in one process with the code. shared: all in one process with it;
# training refuses that unless asked. The mode of a verdict is what decided: `gametape task check` says it before.
mode = "replay"
source_paths = ["MODULE.py"]    # files or directories that are taken from an attempt; nothing else of it is run
test_paths = ["tests"]          # where tests/suite is laid over the sources
import_roots = ["."]            # where imports start, in the workspace
# dependencies = ["attrs==25.1.0"]      # pinned, if the sources or tests need more than pytest

[metadata.gametape.difficulty]
prior = 0.1             # from 0, easy, to 1: a guess

[metadata.gametape.tests]       # FILE::FUNCTION, each in one role
# Visible, and failing at the start: what the agent is to make pass.
fail_to_pass = [
    "tests/test_MODULE.py::test_two_words_are_joined_by_and",
    "tests/test_MODULE.py::test_others_are_joined_by_commas",
    "tests/test_MODULE.py::test_no_words_are_an_error",
]
# Visible, and passing at the start: what must not break.
pass_to_pass = [
    "tests/test_MODULE.py::test_words_are_split_at_white_space",
]
# In tests/suite only, never in the workspace. The instruction has to ask for what each of them tests.
held_out = [
    "tests/test_MODULE_held_out.py::test_one_word_is_the_text",
    "tests/test_MODULE_held_out.py::test_two_other_words",
    "tests/test_MODULE_held_out.py::test_five_words",
    "tests/test_MODULE_held_out.py::test_words_may_have_spaces",
]

[verifier]
timeout_sec = 120.0     # the most that one verification may take

[agent]
timeout_sec = 900.0     # the most that one attempt may take

[environment]           # the limits of the sandbox
cpus = 1
memory_mb = 1024
storage_mb = 512
"""


def scaffold_task(directory: Path, name: str | None = None, module: str | None = None) -> list[Path]:
    """Write a task into a new or empty directory, and return its files. Without a name and a module, both are made of
    the directory's name."""
    module = _default_module(directory) if module is None else _checked_module(module)
    name = f"my/{_slug(directory) or 'task'}" if name is None else _checked_name(name)
    task_toml = TASK_TOML.replace(_MODULE, module).replace("name = NAME", f'name = "{name}"')
    tests = TaskTests.model_validate(tomllib.loads(task_toml)["metadata"]["gametape"]["tests"])
    task = Task(
        name=name,
        mode="replay",
        instruction=INSTRUCTION.replace(_MODULE, module),
        source_paths=[f"{module}.py"],
        tests=tests,
    )
    visible = {f"tests/test_{module}.py": VISIBLE.replace(_MODULE, module).encode()}
    held_out = {f"tests/test_{module}_held_out.py": HELD_OUT.replace(_MODULE, module).encode()}
    loaded_task = LoadedTask(
        task,
        SourceTree({f"{module}.py": START.encode(), **visible}),
        SourceTree({**visible, **held_out}),
        SourceTree({f"{module}.py": REFERENCE.encode(), **visible}),
    )
    with atomic_directory(directory):
        write_task(directory, loaded_task)
        (directory / "task.toml").write_text(task_toml, encoding="utf-8")
        return sorted(path for path in directory.rglob("*") if path.is_file())


def _slug(directory: Path) -> str:
    return "-".join(re.findall("[a-z0-9]+", directory.absolute().name.lower()))


def _default_module(directory: Path) -> str:
    module = _slug(directory).replace("-", "_") or "my_task"
    return module if _is_module(module) else f"my_{module}"


def _is_module(name: str) -> bool:
    """Whether a module of this name would hide no other."""
    reserved = keyword.iskeyword(name) or name in sys.stdlib_module_names or name in _NOT_MODULES
    return bool(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,60}", name)) and not reserved


def _checked_module(module: str) -> str:
    if not _is_module(module):
        raise BadInput(f"--module {module}: give the name of a Python module that no other has, such as join_words")
    return module


def _checked_name(name: str) -> str:
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise BadInput(f"--name {name}: give letters, digits, dots and hyphens, such as my/join-words")
    return name
