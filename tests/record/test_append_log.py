import subprocess
import sys
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.record.append_log import AppendLog


@pytest.mark.parametrize("durable", [True, False])
def test_what_was_appended_is_read_by_the_next_writer(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "log.jsonl"
    with AppendLog.open(path, durable=durable) as log:
        assert log.read_records() == []
        log.append({"n": 1}, {"n": 2})
    with AppendLog.open(path, durable=durable) as log:
        assert log.read_records() == [{"n": 1}, {"n": 2}]
        log.append({"n": 3})
        assert log.sync() == path.stat().st_size
    assert path.read_text() == '{"n": 1}\n{"n": 2}\n{"n": 3}\n'


def test_there_is_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with AppendLog.open(path), pytest.raises(BadInput, match="another process is at it"):
        AppendLog.open(path, busy="another process is at it")
    AppendLog.open(path).close()


def test_an_unfinished_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"n": 1}\n{"n": ')
    with AppendLog.open(path) as log:
        assert log.read_records() == [{"n": 1}]
        log.append({"n": 2})
    assert path.read_bytes() == b'{"n": 1}\n{"n": 2}\n'


@pytest.mark.parametrize("line", [b"nonsense\n", b"[1]\n"])
def test_a_line_that_is_no_record_is_refused_by_its_number(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"n": 1}\n' + line)
    with AppendLog.open(path) as log, pytest.raises(BadInput, match=r"log\.jsonl: line 2"):
        log.read_records()


def test_a_log_of_another_run_is_not_continued(tmp_path: Path) -> None:
    with AppendLog.open(tmp_path / "log.jsonl") as log:
        log.require_header({"seed": 1, "paths": ["a"]}, {"seed": 1, "paths": ("a",)})
        with pytest.raises(BadInput, match="begun with seed 1, not 2; that cannot be resumed"):
            log.require_header({"seed": 1}, {"seed": 2})


def test_truncating_keeps_at_most_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with AppendLog.open(path) as log:
        log.append({"n": 1}, {"n": 2})
        log.truncate(9)
        log.truncate(1000)
        log.append({"n": 3})
        assert log.read_records() == [{"n": 1}, {"n": 3}]


FULL_DISK = """
import resource, sys
from pathlib import Path
from gametape.core.errors import MissingDependency
from gametape.record.append_log import AppendLog
with AppendLog.open(Path(sys.argv[1])) as log:
    log.append({"n": 1})
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 10_000))
    try:
        log.append({"n": "x" * 5000})
    except MissingDependency as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    log.append({"n": 2})
"""


def test_without_room_nothing_of_a_record_stays(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=True)
    assert "free some space" in done.stdout
    assert path.read_text() == '{"n": 1}\n{"n": 2}\n'
