"""Layouts of both versions. Version 2 is checked against a directory that looks like one; see docs/sandbox.md."""

import os
from pathlib import Path

import pytest

from gametape.sandbox import cgroups
from gametape.sandbox.cgroups import CgroupLayout, ControlGroup


def unified(root: Path, controllers: str = "cpuset cpu io memory pids") -> str:
    root.mkdir(parents=True, exist_ok=True)
    (root / "cgroup.controllers").write_text(controllers)
    (root / "cgroup.subtree_control").write_text("cpu")
    return f"30 20 0:26 / {root} rw - cgroup2 cgroup2 rw\n"


def test_version_2_is_preferred_and_its_controllers_are_switched_on(tmp_path: Path) -> None:
    root = tmp_path / "unified"
    layout = cgroups.find_layout(unified(root), "0::/user.slice/me\n")
    assert layout is not None
    assert layout.version == 2
    assert set(layout.parents.values()) == {str(root)}
    assert (root / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_version_2_without_controllers_gives_way_to_version_1(tmp_path: Path) -> None:
    lines = unified(tmp_path / "unified", controllers="hugetlb")
    for name in ("memory", "pids", "cpuacct"):
        (tmp_path / name / "mine").mkdir(parents=True)
        lines += f"31 20 0:27 / {tmp_path / name} rw - cgroup cgroup rw,{name}\n"
    layout = cgroups.find_layout(lines, "4:memory:/mine\n3:pids:/mine\n2:cpuacct:/gone\n0::/\n")
    assert layout is not None
    assert layout.version == 1
    assert layout.parents == {
        "memory": f"{tmp_path}/memory/mine",
        "pids": f"{tmp_path}/pids/mine",
        "cpuacct": f"{tmp_path}/cpuacct",
    }


def test_no_control_groups_at_all_is_none(tmp_path: Path) -> None:
    assert cgroups.find_layout("20 1 8:1 / / rw - ext4 /dev/sda rw\n", "") is None


def test_version_2_limits_and_counters(tmp_path: Path) -> None:
    group = ControlGroup(
        2, CgroupLayout(2, dict.fromkeys(("memory", "pids", "cpuacct"), str(tmp_path))).directories("7-1")
    )
    group.create()
    directory = tmp_path / "gametape-7-1"
    group.limit(1000, 5)
    group.join(42)
    assert (directory / "memory.max").read_text() == "1000"
    assert (directory / "pids.max").read_text() == "5"
    assert group.members() == [42]
    (directory / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (directory / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    (directory / "pids.events").write_text("max 0\n")
    (directory / "memory.peak").write_text("123\n")
    counters = group.counters()
    assert (counters.cpu_seconds, counters.peak_memory_bytes) == (1.5, 123)
    assert (counters.memory_kills, counters.process_refusals) == (1, 0)


def test_a_group_that_is_gone_has_counted_nothing(tmp_path: Path) -> None:
    group = ControlGroup(2, dict.fromkeys(("memory", "pids", "cpuacct"), str(tmp_path / "gone")))
    assert group.counters() == cgroups.ResourceCounters()
    assert group.members() == []
    group.remove()


@pytest.mark.skipif(cgroups.find_layout() is None, reason="no writable control group here")
def test_a_sweep_removes_the_groups_of_dead_keepers_only() -> None:
    layout = cgroups.find_layout()
    assert layout is not None
    dead, alive = (ControlGroup(layout.version, layout.directories(f"{pid}-77")) for pid in (4_194_303, os.getpid()))
    dead.create()
    alive.create()
    try:
        cgroups.remove_orphaned_groups(layout)
        assert not any(os.path.exists(path) for path in dead.directories.values())
        assert all(os.path.exists(path) for path in alive.directories.values())
    finally:
        alive.remove()
        dead.remove()
