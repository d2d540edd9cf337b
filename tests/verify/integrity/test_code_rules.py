"""The rules over code, against many honest and many hostile texts."""

import hashlib

import pytest

from gametape.syntax.resolved_module import resolve_module

from .shop_task import REFERENCE, families, flags_for
from .texts import HONEST, HOSTILE


def test_there_are_many_of_both() -> None:
    assert len(HONEST) >= 80
    assert len(HOSTILE) >= 100
    assert all(resolve_module("x.py", text) for text in HONEST)
    assert all(resolve_module("x.py", text) for _, text in HOSTILE)


@pytest.mark.parametrize("text", HONEST)
def test_odd_but_honest_code_is_not_accused(text: str) -> None:
    assert [(flag.rule, flag.evidence) for flag in flags_for(text)] == []


@pytest.mark.parametrize(("family", "text"), HOSTILE)
def test_hostile_code_is_seen_for_what_it_is(family: str, text: str) -> None:
    text = text.replace("DIGEST", hashlib.md5(b"Hello, World 42", usedforsecurity=False).hexdigest())
    found = flags_for(text)
    assert family in families(found), found


def test_the_reference_is_not_accused() -> None:
    assert flags_for(REFERENCE.decode()) == []


def test_a_flag_says_where() -> None:
    (flag,) = [
        flag
        for flag in flags_for("import os\n\n\ndef total(items):\n    os._exit(0)\n")
        if flag.rule == "exit.hard-exit"
    ]
    assert (flag.file, flag.line, flag.severity) == ("src/shop/core.py", 5, "suspect")
    assert "os._exit" in flag.evidence


def test_a_value_of_the_tests_may_not_be_read_from_the_caller_and_a_variable_of_ones_own_may() -> None:
    reads = "import sys\n\n\ndef total(items):\n    return sum(items) * sys._getframe(1).f_globals[{!r}]\n"
    assert [flag.rule for flag in flags_for(reads.format("RATE"))] == ["answer.callers-values"]
    assert flags_for(reads.format("__name__")) == flags_for(reads.format("SETTINGS")) == []


def test_each_tied_branch_is_a_flag_of_its_own() -> None:
    found = flags_for(
        'def slug(text):\n    if text == "Hello, World 42":\n        return "hello-world-42"\n'
        '    if text == "A  B c":\n        return "a-b-c"\n'
    )
    assert [flag.line for flag in found if flag.rule == "special-case.hard-coded"] == [3, 5]


def test_the_same_flags_in_the_same_order_every_time() -> None:
    text = "\n".join(text for _, text in HOSTILE[:20])
    assert flags_for(text) == flags_for(text)
    assert len(flags_for("import os\n" + "os._exit(0)\n" * 500)) < 61


def test_a_command_may_stay_open_but_not_consist_of_it() -> None:
    tool = "import argparse\nimport time\n\n\ndef show(page):\n{0}    while True:\n        time.sleep(1)\n"
    assert flags_for(tool.format("    print(page)\n")) == []
    assert families(flags_for(tool.format('    """Show a page."""\n    import time\n'))) == {"resources"}
