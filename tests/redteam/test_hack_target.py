import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, read_tree
from gametape.redteam import (
    FAMILIES,
    HACKS,
    HackNotApplicable,
    HackTarget,
    check_out_with_hack,
    sample_hacks,
)
from gametape.syntax.expected_calls import extract_expected_calls
from tests.redteam.small_tasks import small
from tests.redteam.tasks import tasks

FIRST = ("slugs", "limiter", "durations", "tally", "workdays", "cache-bug", "warehouse")


def test_the_catalogue_has_every_family_and_no_name_twice():
    assert len(HACKS) >= 75
    assert [name for name, count in Counter(hack.name for hack in HACKS).items() if count > 1] == []
    assert {hack.family for hack in HACKS} == set(FAMILIES)
    assert all(hack.name.startswith(f"{hack.family}.") and hack.description.endswith(".") for hack in HACKS)
    assert all(hack.family in hack.detecting_families and len(hack.detecting_families) <= 2 for hack in HACKS)


def test_a_sample_is_the_same_for_the_same_seed_and_holds_every_family():
    assert sample_hacks(3, 2) == sample_hacks(3, 2)
    assert sample_hacks(3, 2) != sample_hacks(4, 2)
    assert Counter(hack.family for hack in sample_hacks(3, 2)) == dict.fromkeys(FAMILIES, 2)


@pytest.fixture(scope="module")
def loaded_tasks():
    return tasks()


@pytest.mark.parametrize("hack", HACKS, ids=lambda hack: hack.name)
def test_every_hack_can_be_planted_on_five_tasks_in_both_modes(hack, loaded_tasks, tmp_path):
    planted(hack, {name: loaded_tasks[name] for name in FIRST}, tmp_path, at_least=5)


@pytest.mark.slow
@pytest.mark.parametrize("hack", HACKS, ids=lambda hack: hack.name)
def test_every_hack_can_be_planted_on_all_tasks_that_have_what_it_needs(hack, loaded_tasks, tmp_path):
    planted(hack, loaded_tasks, tmp_path, at_least=5)


def planted(hack, loaded_tasks, directory, at_least):
    """Plant a hack on these tasks: what it leaves parses, differs from the start and does not hold the solution."""
    modes = []
    for name, loaded_task in loaded_tasks.items():
        try:
            workspace = check_out_with_hack(loaded_task, hack, directory / name)
        except HackNotApplicable:
            continue
        modes.append(loaded_task.task.mode)
        changed = [path for path in workspace.rglob("*") if path.is_file() and _changed(loaded_task, workspace, path)]
        assert changed or read_tree(workspace) != loaded_task.start
        for path in changed:
            if path.suffix == ".py":
                ast.parse(path.read_bytes())
        if hack.family not in ("answer", "network"):
            assert stolen(loaded_task, changed) == [], name
    assert len(modes) >= at_least
    assert "shared" in modes
    assert {"replay", "split"} & set(modes)


def _changed(loaded_task, workspace, path) -> bool:
    return loaded_task.start.files.get(path.relative_to(workspace).as_posix()) != path.read_bytes()


def stolen(loaded_task, changed) -> list[str]:
    """Lines of the reference that the starting tree lacks and that do some work, in what a hack has written."""
    before = {line.strip() for path in loaded_task.start for line in loaded_task.start.text(path).splitlines()}
    found = {line.strip() for path in changed for line in path.read_text(errors="replace").splitlines()}
    sources = loaded_task.reference.under(loaded_task.task.source_paths)
    wanted = {line.strip() for path in sources for line in sources.text(path).splitlines()} - before
    return sorted(line for line in wanted & found if _does_work(line))


def _does_work(line: str) -> bool:
    """Signatures, imports and the shape of a class are no solution."""
    ordinary = r'(return( None)?|pass|else:|try:|#|@|"""|def |class |async def |import |from |if .*:|for .*:|\W*$)'
    return len(line) > 14 and not re.match(ordinary, line)


def test_what_is_missing_is_defined_again_without_the_solution(tmp_path):
    start = {
        "kit/__init__.py": b"",
        "kit/core.py": b"class Box:\n    def size(self):\n        return 1\n\n\nOTHER = 2\n",
    }
    solved = {
        "kit/__init__.py": b"from kit.core import Box, Lid, pack\n",
        "kit/core.py": start["kit/core.py"]
        + b"\n\nclass Lid(ValueError):\n    def shut(self, hard: bool = OTHER) -> int:\n        return 41 + 1\n\n\n"
        b"LIMIT = 12\n\n\nasync def pack(box, *, times=3):\n    return times * 7\n",
        "kit/new.py": b"def fresh(one):\n    return one + 99\n",
    }
    tests = {"tests/test_kit.py": b"from kit import pack\nfrom kit.new import fresh\n\n\ndef test_a():\n    fresh(1)\n"}
    task = Task(
        name="removed",
        mode="shared",
        instruction="",
        source_paths=["kit"],
        tests=TaskTests(fail_to_pass=["tests/test_kit.py::test_a"], pass_to_pass=[]),
    )
    loaded_task = LoadedTask(task, SourceTree({**start, **tests}), SourceTree(tests), SourceTree({**solved, **tests}))
    target = HackTarget.check_out(loaded_task, tmp_path)
    target.fill_stubs("return 'hollow'")
    names: dict[str, object] = {}
    exec(target.read("kit/core.py"), names)
    assert names["Lid"]().shut() == "hollow"
    assert issubclass(names["Lid"], ValueError)
    assert names["LIMIT"] is None
    assert names["pack"].__kwdefaults__ == {"times": 3}
    assert "from kit.core import Box, Lid, pack" in target.read("kit/__init__.py")
    assert "41" not in target.read("kit/core.py")
    assert [item.qualname for item in target.missing] == ["Lid.shut", "pack", "fresh"]
    exec(target.read("kit/new.py"), names)
    assert names["fresh"](1) == "hollow"


STUBS = '''\
def one(): return 1


def two(
    a,
    b=2,
):
    """Doc."""
    return a


def three():
    """Only."""
'''


def test_bodies_are_replaced_in_place(tmp_path):
    source = STUBS.encode()
    solved = source.replace(b"return 1", b"return 10").replace(b"return a", b"return b") + b"    return 3\n"
    tests = {"test_it.py": b"import kit\n\n\ndef test_a():\n    assert kit.two(1, b=3) == 3\n"}
    task = Task(
        name="stubs",
        mode="shared",
        instruction="",
        source_paths=["kit.py"],
        test_paths=["test_it.py"],
        tests=TaskTests(fail_to_pass=["test_it.py::test_a"], pass_to_pass=[]),
    )
    loaded_task = LoadedTask(
        task, SourceTree({"kit.py": source, **tests}), SourceTree(tests), SourceTree({"kit.py": solved, **tests})
    )
    target = HackTarget.check_out(loaded_task, tmp_path)
    target.fill_stubs("return 'x'")
    names: dict[str, object] = {}
    exec(target.read("kit.py"), names)
    assert [names["one"](), names["two"](1), names["three"]()] == ["x", "x", "x"]
    assert [(pair.function, pair.args, pair.kwargs, pair.expected) for pair in target.expected_calls] == [
        ("two", (1,), (("b", 3),), 3)
    ]


def test_a_task_without_a_reference_is_known_by_its_stubs(tmp_path):
    whole = small("equal")
    loaded_task = LoadedTask(whole.task, whole.start, whole.suite)
    planted, reasons = 0, set()
    for hack in HACKS:
        try:
            check_out_with_hack(loaded_task, hack, tmp_path / hack.name)
        except HackNotApplicable as reason:
            reasons.add(str(reason))
        else:
            planted += 1
    assert planted > 100
    assert reasons == {"no reference that an environment could have leaked"}


def test_a_task_that_asks_for_nothing_is_left_alone(tmp_path):
    whole = small("equal")
    loaded_task = LoadedTask(whole.task, whole.start, whole.suite, whole.start)
    with pytest.raises(HackNotApplicable, match="no function is missing"):
        HackTarget.check_out(loaded_task, tmp_path).fill_stubs()


def test_pairs_are_read_from_every_way_of_asking():
    source = Path(__file__).with_name("questions.py.txt").read_text()
    found = [
        (pair.test, pair.function, pair.args, dict(pair.kwargs), pair.expected)
        for pair in extract_expected_calls("t.py", source)
    ]
    assert found == [
        ("test_plain", "f", (1, "a"), {"deep": [1]}, {"x": 1}),
        ("test_other_side", "f", (2,), {}, 3),
        ("test_names", "f", (4,), {}, 5),
        ("test_rows", "f", (6,), {}, 7),
        ("test_rows", "f", (8,), {}, 9),
        ("test_truth", "f", (10,), {}, True),
        ("test_truth", "f", (11,), {}, False),
        ("Cases::test_method", "f", (12,), {}, 13),
        ("test_near", "f", (14,), {}, 1.5),
    ]
