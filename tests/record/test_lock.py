import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.record.lock import held_files, hold_lock, is_held, is_locked, locked, require_lock, try_lock


def test_a_lock_is_held_for_its_block_and_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    with locked(path):
        assert is_locked(path)
        with pytest.raises(BlockingIOError):
            hold_lock(path)
    assert not is_locked(path)
    fd = hold_lock(path)
    assert is_locked(path)
    os.close(fd)
    assert not is_locked(path)


def test_threads_wait_for_each_other(tmp_path: Path) -> None:
    path, order = tmp_path / "lock", []

    def work() -> None:
        with locked(path):
            order.append("second")

    with locked(path):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize("inheritable", [False, True])
def test_a_child_holds_an_inheritable_lock_until_it_ends(tmp_path: Path, inheritable: bool) -> None:
    path = tmp_path / "lock"
    with locked(path, inheritable=inheritable):
        command = [sys.executable, "-c", "print('up', flush=True); input()"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False)
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
    assert is_locked(path) is inheritable
    child.communicate(b"\n")
    assert not is_locked(path)


def test_a_directory_can_be_locked_and_the_error_says_who_is_busy(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    try:
        require_lock(first, tmp_path)
        assert not try_lock(second)
        with pytest.raises(BadInput, match="another process is at work"):
            require_lock(second, tmp_path, "another process is at work")
    finally:
        os.close(first)
        os.close(second)


def test_who_looks_at_the_kernels_list_keeps_nobody_from_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path, held_files())
    with locked(path):
        assert is_held(path, held_files())
        assert not is_held(tmp_path, held_files())
    assert not is_held(path, held_files())
