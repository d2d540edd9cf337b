import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gametape.core.errors import BadInput, MissingDependency
from gametape.record import append_log as module
from gametape.tasks.mining.mining_log import MINING_LOG_NAME, MiningLog

RUN = {"source": "abc", "seed": 0, "tier": "stub"}


def written(directory: Path, *records: dict[str, object]) -> Path:
    with MiningLog.open(directory, RUN, resume=False) as ledger:
        for record in records:
            ledger.append(record)
    return directory / MINING_LOG_NAME


def kept(directory: Path, kind: str = "candidate") -> list[dict[str, object]]:
    with MiningLog.open(directory, RUN, resume=True) as ledger:
        return [*ledger.records_of_kind(kind)]


def refusal(directory: Path, run: dict[str, object] = RUN, resume: bool = True) -> str:
    with pytest.raises(BadInput) as caught:
        MiningLog.open(directory, run, resume)
    return str(caught.value)


ONE, TWO = {"kind": "candidate", "candidate": "1"}, {"kind": "candidate", "candidate": "2"}
OTHER = {"kind": "learned", "tests": 3}


def test_what_is_added_is_there_when_resumed(tmp_path: Path) -> None:
    written(tmp_path / "out", ONE, OTHER, TWO)
    assert kept(tmp_path / "out") == [ONE, TWO]
    assert kept(tmp_path / "out", "learned") == [OTHER]


def test_a_record_is_on_disk_before_the_ledger_is_closed(tmp_path: Path) -> None:
    with MiningLog.open(tmp_path, RUN, resume=False) as ledger:
        ledger.append(ONE)
        assert json.loads((tmp_path / MINING_LOG_NAME).read_text().splitlines()[-1]) == ONE
        assert [*ledger.records_of_kind("candidate")] == [ONE]


@pytest.mark.parametrize("torn", ['{"kind": "candidate", "candi', "{", '{"kind": "candidate", "candidate": "2"}'])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: str) -> None:
    path = written(tmp_path, ONE)
    whole = path.read_bytes()
    path.write_bytes(whole + torn.encode())
    assert kept(tmp_path) == [ONE]
    assert path.read_bytes() == whole


def test_after_a_torn_line_it_goes_on(tmp_path: Path) -> None:
    path = written(tmp_path, ONE)
    path.write_bytes(path.read_bytes() + b'{"kind"')
    with MiningLog.open(tmp_path, RUN, resume=True) as ledger:
        ledger.append(TWO)
    assert kept(tmp_path) == [ONE, TWO]


def test_a_torn_header_begins_anew(tmp_path: Path) -> None:
    (tmp_path / MINING_LOG_NAME).write_text('{"gametape_mi')
    assert kept(tmp_path) == []
    assert json.loads((tmp_path / MINING_LOG_NAME).read_text())["seed"] == 0


@pytest.mark.parametrize("line", ["not json\n", "[1\n", "3\n", '["a"]\n', "{}\n", "\xff\xfe\n", "null\n"])
def test_a_file_that_is_no_ledger_is_said_to_be_none(tmp_path: Path, line: str) -> None:
    (tmp_path / MINING_LOG_NAME).write_text(line, encoding="latin-1")
    assert str(tmp_path / MINING_LOG_NAME) in refusal(tmp_path)
    assert (tmp_path / MINING_LOG_NAME).read_text(encoding="latin-1") == line


@pytest.mark.parametrize("line", ["not json\n", "3\n", "[]\n", "{}\n"])
def test_a_broken_line_in_the_middle_is_said_too(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, ONE)
    path.write_text(path.read_text() + line + json.dumps(TWO) + "\n")
    assert str(path) in refusal(tmp_path)


def test_another_run_is_not_continued(tmp_path: Path) -> None:
    written(tmp_path)
    assert "begun with seed 0, not 7; that cannot be resumed" in refusal(tmp_path, {**RUN, "seed": 7})


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    with MiningLog.open(tmp_path, RUN, resume=False):
        assert "another process is mining into it" in refusal(tmp_path)
        code = "import sys; from pathlib import Path; from gametape.tasks.mining.mining_log import MiningLog\n"
        code += f"MiningLog.open(Path(sys.argv[1]), {RUN!r}, True)"
        done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
        assert "another process is mining into it" in done.stderr
    assert kept(tmp_path) == []


def test_a_directory_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "not empty" in refusal(tmp_path, resume=False)
    assert "nothing to resume there, and it is not empty" in refusal(tmp_path, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_ledger_is_not_begun_twice(tmp_path: Path) -> None:
    written(tmp_path, ONE)
    assert "begun before; --resume goes on with it" in refusal(tmp_path, resume=False)
    assert kept(tmp_path) == [ONE]


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "not a directory" in refusal(tmp_path / "file", resume=False)


def test_a_new_directory_is_made_and_an_empty_one_taken(tmp_path: Path) -> None:
    assert kept(tmp_path / "a/b") == []
    (tmp_path / "empty").mkdir()
    assert written(tmp_path / "empty").exists()


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(fd: int, data: bytes) -> None:
        os.write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with MiningLog.open(tmp_path, RUN, resume=False) as ledger:
        ledger.append(ONE)
        with monkeypatch.context() as patch:
            patch.setattr(module, "write_all", half)
            with pytest.raises(MissingDependency, match="No space left on device"):
                ledger.append(TWO)
        assert [*ledger.records_of_kind("candidate")] == [ONE]
        ledger.append(OTHER)
    assert kept(tmp_path) == [ONE]
    assert kept(tmp_path, "learned") == [OTHER]
