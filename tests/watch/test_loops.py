"""A loop is what a session did before with nothing new in between, whatever ids and numbers are in it."""

import random
import uuid
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from gametape.watch.monitors.loops import ActionLoop
from gametape.watch.normalised import normalised
from gametape.watch.observed_step import ObservedAction, ObservedStep

_RNG = random.Random(3)


def did(tool: str, arguments: Any, result: str = "ok", session: str | None = None) -> ObservedStep:
    return ObservedStep("", (ObservedAction.of(tool, arguments),), result, session=session)


def shell(command: str, result: str = "ok") -> ObservedStep:
    return did("shell", {"command": command}, result)


def share(steps: Iterator[ObservedStep] | list[ObservedStep]) -> float:
    """The share of the later steps that count."""
    monitor = ActionLoop()
    counted = [monitor.update(step) or 0.0 for step in steps]
    return sum(counted[40:]) / len(counted[40:])


def _word(number: int) -> str:
    return "".join(chr(97 + number * 7919 // 26**place % 26) for place in range(5))


LOOPS: dict[str, Callable[[int], ObservedStep]] = {
    "pid": lambda n: shell("make serve", f"started, pid {_RNG.randrange(9999)}"),
    "uuid": lambda n: shell("make job", f"job {uuid.UUID(int=_RNG.getrandbits(128))} queued"),
    "hash": lambda n: shell("git stash", f"saved {_RNG.getrandbits(64):x}"),
    "temporary": lambda n: shell("mktemp", f"/tmp/tmp{_word(n)}q"),
    "counter": lambda n: shell("retry", f"attempt {n} did not work"),
    "address": lambda n: shell("run", f"<object at 0x{_RNG.getrandbits(40):x}>"),
    "port": lambda n: shell(f"serve --port {8000 + n}", "address already in use"),
    "missing file": lambda n: shell(f"cat build/out_{n}.log", f"cat: build/out_{n}.log: No such file"),
    "flags": lambda n: shell(("ls -a -l", "ls -l -a")[n % 2]),
    "round": lambda n: did(("read", "search", "test", "list")[n % 4], {"query": _word(n)}, f"{_word(3 * n)} seen"),
    "again": lambda n: did("read", {"path": f"src/{_word(n % 12)}.py"}, f"def {_word(n % 12)}(): ..."),
    "one place": lambda n: did("edit", {"path": "a/b.py", "line": _RNG.randrange(400)}, _word(n)),
}
WORK: dict[str, Callable[[int], ObservedStep]] = {
    "rename": lambda n: shell(f"sed -i s/old/new/ src/{_word(n)}_{n}.py", ""),
    "poll": lambda n: shell("status", f"{n} of 400 done, {n / 4}%"),
    "countdown": lambda n: shell("status", f"{400 - n} jobs left"),
    "edit and test": lambda n: (
        did("edit", {"path": "a/b.py", "new": f"def {_word(n)}({_word(n + 1)})"}, "ok")
        if n % 2 == 0
        else shell("pytest -q", f"{n % 3} failed in {n / 7:.2f}s")
    ),
    "paging": lambda n: did("read", {"path": "a/b.py", "offset": 50 * n}, f"{_word(n)} {_word(n + 40)}"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_counts(name: str) -> None:
    assert share([LOOPS[name](number) for number in range(100)]) > 0.9


@pytest.mark.parametrize("name", WORK)
def test_work_does_not(name: str) -> None:
    assert share([WORK[name](number) for number in range(90)]) < 0.1


def test_sessions_are_apart_and_few_are_remembered() -> None:
    monitor = ActionLoop()
    assert not any(monitor.update(did("ls", {}, session=f"{number}")) for number in range(200))


def test_order_of_flags_and_ids_are_gone_and_files_stay() -> None:
    one = normalised(shell("cp -r --force src/a_1.py /tmp/x.1", "done at 12:00:01, id 4f2a99c1de"))
    two = normalised(shell("cp --force -r src/a_1.py /tmp/y.2", "done at 12:00:59, id 77aa01bd2c"))
    other = normalised(shell("cp -r --force src/a_2.py /tmp/x.1", "done at 12:00:01, id 4f2a99c1de"))
    assert one.state == two.state != other.state
    assert one.pattern == other.pattern
    assert one.files == {"src/a_1.py"}


def test_what_is_remembered_of_a_session_is_bounded() -> None:
    monitor = ActionLoop()
    for step in islice((shell(f"cat f{n}/a.py b{n}/c.py", f"{n} x{_word(n)}") for n in range(10**9)), 3000):
        monitor.update(step)
    done = monitor._done
    assert max(len(done.states), len(done.courses), len(done.files)) <= 400
