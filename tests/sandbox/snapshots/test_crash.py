"""kill -9 at any instant: what was acknowledged is there, whole; nothing else is, and nothing is left behind."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gametape.sandbox.snapshots.store import SnapshotStore
from tests.sandbox.snapshots.rig import worker_command

MOST = 7
"""Snapshots that are waited for before a kill; enough work is done on any machine, however busy it is."""


@pytest.mark.skipif(os.geteuid() != 0, reason="overlayfs without a user namespace is for root")
@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_killed_at_any_instant(tmp_path: Path, mode: str) -> None:
    kill_again_and_again(tmp_path, mode, times=10)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="overlayfs without a user namespace is for root")
@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_killed_at_any_instant_for_long(tmp_path: Path, mode: str) -> None:
    kill_again_and_again(tmp_path, mode, times=100)


def kill_again_and_again(root: Path, mode: str, times: int) -> None:
    chance = random.Random(7)
    known: dict[str, int] = {}
    checked: set[str] = set()
    for number in range(times):
        fresh = run_and_kill(root, mode, number % (MOST + 1), chance.uniform(0.0, 0.03))
        again = chance.sample(sorted(known), min(10, len(known)))
        known |= fresh
        checked = check(root, known, checked - set(again))
    assert len(known) > times


def run_and_kill(root: Path, mode: str, count: int, after: float) -> dict[str, int]:
    """The snapshots that a process acknowledged before it was killed: so many, and what comes in the moment after."""
    command = worker_command(False, "crasher", str(root), mode)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        said = [process.stdout.readline() for _ in range(count)]
        time.sleep(after)
        os.killpg(process.pid, signal.SIGKILL)
        said += process.stdout.read().splitlines(keepends=True)
    return {line.split()[0]: int(line.split()[1]) for line in said if line.endswith("\n")}


def check(root: Path, known: dict[str, int], believed: set[str]) -> set[str]:
    """Everything that must hold. All snapshots but those `believed` are looked at, acknowledged or not; returns all."""
    with SnapshotStore(root / "store") as store:
        places = store.paths
        assert [list(place.iterdir()) for place in (places.building, places.views, places.trash)] == [[], [], []]
        found = {snapshot.id: snapshot for snapshot in store.snapshots()}
        assert set(known) <= set(found)
        named = {layer for snapshot in found.values() for layer in snapshot.layer_ids}
        assert named == set(os.listdir(places.layers))
        assert not [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(root) in line]
        exported = root / "exported"
        for name in set(found) - believed:
            store.export(name, exported)
            count = int((exported / "count").read_text())
            assert count == known.get(name, count)
            assert count == 0 or (exported / f"new-{count}").read_text() == str(count)
            subprocess.run(["rm", "-rf", exported], check=True)
        return set(found)
