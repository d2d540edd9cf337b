"""Files as they are found: pipes, byte order marks, torn ends, and files that change while they are read."""

import bz2
import gzip
import json
import lzma
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.watch.log_reader import LoggedStep, read_log

LINES = "".join(json.dumps({"text": f"step {number}"}) + "\n" for number in range(3000)).encode()


def _texts(steps: Iterator[LoggedStep]) -> list[str]:
    return [placed.observed.text for placed in steps if placed.observed is not None]


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(LINES,))
    writer.start()
    assert len(_texts(read_log(pipe))) == 3000
    writer.join()


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + LINES,
        LINES.replace(b"\n", b"\r\n"),
        LINES + b'{"text": "to',
        gzip.compress(b"\n\n" + LINES),
        bz2.compress(LINES),
        lzma.compress(LINES[:5000]) + lzma.compress(LINES[5000:]),
    ],
    ids=["byte order mark", "carriage returns", "torn", "gzip", "bzip2", "xz in two parts"],
)
def test_the_same_steps_whatever_wrote_them(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    texts = _texts(read_log(path))
    assert len(texts) == 3000
    assert texts[0] == "step 0"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:40] + b"\0" * 40 + data[80:]])
def test_a_compressed_file_that_is_damaged_is_said_in_one_line(
    tmp_path: Path, pack: Callable[[bytes], bytes], damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "log.xz"
    path.write_bytes(damage(pack(os.urandom(64).hex().encode() * 50)))
    with pytest.raises(BadInput, match=r"log\.xz: cannot be read"):
        list(read_log(path, "text"))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"text": "caf\xe9"}\n')
    assert _texts(read_log(path)) == ["caf\ufffd"]
    path.write_bytes(b"\x7fELF\0\0\0")
    with pytest.raises(BadInput, match="not text"):
        list(read_log(path))


def _followed(path: Path, *changes: Callable[[], object]) -> list[LoggedStep]:
    """What is read while the file is changed, each time its end was reached."""
    left = list(changes)

    def go_on() -> bool:
        if left:
            left.pop(0)()
            return True
        return False

    return list(read_log(path, go_on=go_on))


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gametape.watch.log_tail._POLL_SECONDS", 0.0)


def test_what_an_empty_file_holds_is_known_when_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.touch()
    steps = _followed(path, lambda: None, lambda: path.write_bytes(LINES[:10]), lambda: path.write_bytes(LINES))
    assert len(_texts(iter(steps))) == 3000
    assert steps[0].observed is not None
    assert steps[0].observed.text == "step 0"


def test_a_file_that_is_cut_off_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(LINES)
    steps = _followed(path, lambda: path.write_bytes(b'{"text": "after"}\n'), lambda: None, lambda: None)
    assert (len(steps), steps[-1].step) == (3001, 1)


def test_a_file_that_is_replaced_is_read_to_its_end_first(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(LINES)

    def rotate() -> None:
        with path.open("ab") as file:
            file.write(b'{"text": "last"}\n')
        path.rename(tmp_path / "log.jsonl.1")

    def begin() -> None:
        path.write_bytes(b'{"text": "first"}\n')

    texts = _texts(iter(_followed(path, rotate, begin, lambda: None, lambda: None, lambda: None)))
    assert texts[-2:] == ["last", "first"]
