"""Whatever is done to a view, and whenever it is sealed, forked or restored, it is what a plain directory would be.

Exactly: after every change the view shows the same names, kinds, modes, contents, link targets, attributes, times that
were set and groups of hard links as a plain directory after the same change, and the change gave the same error; and
every snapshot exports as the directory was when it was taken. One exception: a directory that comes from a layer cannot
be renamed (EXDEV), so it is moved as `mv` does it, in both.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.sandbox.snapshots.rig import SETTINGS, Rig

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TEXTS = st.text(alphabet="xyz", max_size=6)


def changes() -> st.SearchStrategy[list[Any]]:
    def step(kind: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
        return st.tuples(st.just(kind), *arguments).map(list)

    return st.one_of(
        step("write", PATHS, TEXTS),
        step("mkdir", PATHS),
        step("append", PATHS, TEXTS),
        step("truncate", PATHS, st.integers(0, 9)),
        step("unlink", PATHS),
        step("rename", PATHS, PATHS),
        step("chmod", PATHS, st.sampled_from([0o644, 0o600, 0o755, 0o1777, 0o444])),
        step("rmdir", PATHS),
        step("symlink", PATHS, st.sampled_from(["a", "../b", "/nowhere", "c/a"])),
        step("link", PATHS, PATHS),
        step("utime", PATHS, st.integers(1, 10**18)),
        step("setxattr", PATHS, TEXTS),
        step("replace", PATHS),
        step("seal"),
        step("seal"),
        step("fork", st.integers(-1, 9)),
        step("fork", st.just(-1)),
        step("restore", st.integers(0, 9)),
        step("switch"),
    )


@pytest.fixture(params=SETTINGS, ids=str, scope="module")
def player(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with Rig(request.param) as started:
        yield started


STEPS = st.lists(changes(), min_size=12, max_size=40)
QUIET = [*HealthCheck]


@settings(max_examples=12, suppress_health_check=QUIET)  # a sample; the slow test has many
@given(steps=STEPS)
@example(steps=[["replace", "a"], ["seal"], ["fork", -1]])
@example(steps=[["replace", "a"], ["seal"], ["fork", -1], ["mkdir", "a/b"], ["seal"], ["fork", -1]])
@example(steps=[["unlink", "a/a"], ["seal"], ["fork", -1], ["mkdir", "a/a"], ["seal"], ["fork", -1]])
@example(steps=[["unlink", "a/a"], ["seal"], ["fork", -1], ["write", "a/a", "x"], ["seal"], ["restore", 0]])
@example(steps=[["append", "b/c", "x"], ["seal"], ["fork", -1], ["append", "a/b/a", "y"], ["seal"], ["fork", -1]])
@example(steps=[["append", "b/b", "x"], ["seal"], ["append", "b/b", "y"], ["seal"], ["fork", 1]])
@example(steps=[["rename", "a", "c"], ["seal"], ["fork", -1], ["rename", "c", "a"], ["seal"], ["fork", -1]])
def test_a_view_is_a_plain_directory(player: Rig, steps: list[list[Any]]) -> None:
    assert player.play(steps) == []


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=QUIET)
@given(steps=st.lists(changes(), min_size=20, max_size=80))
def test_a_view_is_a_plain_directory_for_long(player: Rig, steps: list[list[Any]]) -> None:
    assert player.play(steps) == []
