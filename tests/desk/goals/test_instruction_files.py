"""Which changes of lower instructions leave a check as it was."""

import pytest

from gametape.desk.goals.command_trace import CommandTrace
from gametape.desk.goals.instruction_files import lower_instructions, may_change
from gametape.record.source_tree import SourceTree
from gametape.sandbox.result import AccessKind, FileTrace, PathAccess, TracedProcess

_FILES = {
    "Makefile": "include parts.mk\ncheck:\n\tsh tests.sh\n",
    "parts.mk": "PARTS = a.c\n",
    "tests.sh": ". ./lib.sh\ntest $(greet) = $(sh bin/two)\n",
    "lib.sh": "greet() {\n  echo hi\n}\n",
    "bin/two": "python3 two.py\n",
    "a.c": "",
    "b.c": "",
    "want": "3\n",
}
_PROCESSES = (("make", "check"), ("sh", "tests.sh"), ("sh", "bin/two"))
_READ = (("Makefile", 0), ("parts.mk", 0), ("tests.sh", 1), ("lib.sh", 1), ("want", 1), ("bin/two", 2))


def _trace() -> CommandTrace:
    kind: AccessKind = "read"
    accesses = tuple(PathAccess(path=f"/workspace/{path}", kind=kind, process=number) for path, number in _READ)
    processes = tuple(
        TracedProcess(words=words, directory="/workspace", parent=number - 1 if number else None)
        for number, words in enumerate(_PROCESSES)
    )
    tree = SourceTree({path: text.encode() for path, text in _FILES.items()})
    return CommandTrace(FileTrace(accesses=accesses, processes=processes), tree)


def test_what_is_included_sourced_or_started_is_below_and_what_the_command_names_is_not() -> None:
    assert lower_instructions(_trace()) == {"parts.mk", "tests.sh", "lib.sh", "bin/two"}


@pytest.mark.parametrize(
    ("path", "after", "may"),
    [
        ("parts.mk", "PARTS = a.c b.c\n", True),
        ("parts.mk", "PARTS = a.c -DNDEBUG\n", False),
        ("parts.mk", "PARTS = b.c\n", True),
        ("parts.mk", "PARTS = a.c\ncheck:\n\techo\n", False),
        ("Makefile", "include parts.mk\ncheck:\n\tsh a.c tests.sh\n", True),
        ("Makefile", "include parts.mk\ncheck:\n\tsh tests.sh || b.c\n", False),
        ("Makefile", "include parts.mk\ncheck:\n\tsh\n", True),
        ("Makefile", "include parts.mk\n\tsh tests.sh\n", False),
        ("lib.sh", "greet() {\n  echo hello\n}\nmore() {\n  echo more\n}\n", True),
        ("lib.sh", "greet() {\n  echo hello\n}\nsh() {\n  echo 3\n}\n", False),
        ("lib.sh", "greet() {\n  echo hi\n}\nexit 0\n", False),
        ("tests.sh", ". ./lib.sh\necho $(greet) $(sh bin/two)\n", False),
        ("bin/two", "exec python3 -m two\n", True),
        ("bin/two", "PATH=.:$PATH\npython3 two.py\n", False),
    ],
)
def test_a_change_may_not_touch_what_decides(path: str, after: str, may: bool) -> None:
    assert may_change(_trace(), path, after.encode()) is may
