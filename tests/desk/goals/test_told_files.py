"""What is told of changed files: marks that silence a tool, and which of the unopened files come first."""

import pytest

from gametape.desk.goals.command_trace import CommandTrace
from gametape.desk.goals.told_files import by_notice, silenced
from gametape.record.source_tree import SourceTree
from gametape.sandbox.result import FileTrace, PathAccess, TracedProcess


def _tree(**texts: str) -> SourceTree:
    return SourceTree({name: text.encode() for name, text in texts.items()})


@pytest.mark.parametrize(
    "text",
    [
        "import os  # noqa: F401\n",
        "# ruff: noqa\n",
        "x = 1  # type: ignore[assignment]\n",
        "# mypy: ignore-errors\n",
        "/* eslint-disable */\n",
        "// @ts-nocheck\n",
        "# pylint: disable=all\n",
        "# shellcheck disable=SC2086\n",
        "#![allow(dead_code)]\n",
        "int x; // NOLINT\n",
    ],
)
def test_a_mark_that_was_added_is_told_and_one_that_was_there_is_not(text: str) -> None:
    assert silenced(_tree(a="x\n"), _tree(a=text), ["a"]) == {"a"}
    assert silenced(_tree(a=text), _tree(a=f"y\n{text}"), ["a"]) == set()


@pytest.mark.parametrize("text", ["the type is ignored\n", "# type: int\n", "allow(user)\n", "def lint(path): ...\n"])
def test_words_like_these_are_no_marks(text: str) -> None:
    assert silenced(SourceTree(), _tree(a=text), ["a"]) == set()


def test_what_a_command_could_notice_comes_first() -> None:
    accesses = (
        PathAccess(path="/workspace/strict", kind="look", process=0),
        PathAccess(path="/workspace", kind="list", process=0),
        PathAccess(path="/workspace/cases", kind="list", process=0),
    )
    process = TracedProcess(words=("sh", "run"), directory="/workspace", parent=None)
    files = _tree(**{"a.txt": "", "docs/a.md": "", "cases/new": ""})
    trace = CommandTrace(FileTrace(accesses=accesses, processes=(process,), complete=True), files)
    paths = ["docs/a.md", "cases/old", "a.txt", "cases/new", "strict"]
    assert by_notice(paths, [trace], files) == ["strict", "cases/old", "a.txt", "cases/new", "docs/a.md"]


def test_an_option_that_takes_a_value_does_not_hide_the_script() -> None:
    files = _tree(**{"check.js": "", "setup.js": ""})
    words = (("node", "-r", "./setup.js", "check.js"), ("php", "-r", "check.js"), ("node", "-e", "check.js"))
    processes = tuple(TracedProcess(words=one, directory="/workspace", parent=None) for one in words)
    assert CommandTrace(FileTrace(accesses=(), processes=processes, complete=True), files).scripts == {0: "check.js"}
