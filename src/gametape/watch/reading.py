"""Steps from anyone's logs: ATIF files and journals, JSON lines, plain text. Compressed files too."""

import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.core.problems import problems_in
from gametape.core.step import Step
from gametape.record.files import load
from gametape.record.lines import JOURNAL_KEY, SUBAGENT_KEY
from gametape.record.trouble import shown, unreadable
from gametape.watch.seen import Seen, seen_in_record, seen_of, steps_of

Format = Literal["auto", "atif", "jsonl", "text"]
LOGS = (".json", ".jsonl", ".log", ".txt")
TRAJECTORIES = (".json", ".jsonl")
_LONGEST_LINE = 16 << 20
_LONGEST_TEXT = 20_000
_POLL_SECONDS = 0.25


def format_named(name: str) -> Format:
    match name:
        case "auto" | "atif" | "jsonl" | "text":
            return name
    raise BadInput(f"--format {name}: expected auto, atif, jsonl or text")


class Placed(NamedTuple):
    """A step and where it stands: its number in its file, a line's number or an ATIF step's own. None is a blank line
    of a text, which counts and says nothing."""

    file: Path
    step: int
    seen: Seen | None


def files_in(paths: list[Path], suffixes: Sequence[str] = LOGS) -> list[Path]:
    """Files as they are, and of a directory everything that is named like one."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.suffix in suffixes)
            if not inside:
                raise BadInput(f"{shown(path)}: a directory without {' or '.join(suffixes)} files")
            found += inside
        else:
            found.append(path)
    return found


def trajectories_in(paths: list[Path]) -> list[Path]:
    return files_in(paths, TRAJECTORIES)


def read(path: Path, format: Format = "auto", go_on: Callable[[], bool] = lambda: False) -> Iterator[Placed]:
    """The steps of one file. At its end, `go_on` says whether to wait for more; a line counts once it is whole."""
    kind = guessed(path) if format == "auto" else format
    if kind == "atif" and not _is_journal(path):
        yield from (Placed(path, number, seen) for number, seen in steps_of(load(path)))
        return
    lines = _lines(path, go_on)
    if kind == "atif":
        yield from _journal(path, lines)
    elif kind == "jsonl":
        yield from _json_lines(path, lines)
    else:
        yield from _text(path, lines)


def guessed(path: Path) -> Format:
    """By what a file begins with: a JSON object per line, one JSON object in all, or neither."""
    with _opened(path) as file:
        line = _line(path, file)
        while line and not line.strip():
            line = _line(path, file)
    head = line.strip()
    if head.startswith(f'{{"{JOURNAL_KEY}"'.encode()):
        return "atif"
    if not head.startswith(b"{"):
        return "text"
    try:
        document = json.loads(head)
    except (ValueError, RecursionError):
        return "atif" if path.suffix == ".json" or head == b"{" else "text"
    version = document.get("schema_version") if isinstance(document, dict) else None
    return "atif" if version is not None and ("steps" in document or str(version).startswith("ATIF")) else "jsonl"


def _is_journal(path: Path) -> bool:
    with _opened(path) as file:
        return _line(path, file).startswith(f'{{"{JOURNAL_KEY}"'.encode())


def _opened(path: Path) -> Any:
    try:
        if path.is_dir():
            raise BadInput(f"{shown(path)}: a directory")
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return gzip.open(path) if packed else path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:
        raise BadInput(f"{shown(path)}: not a path") from None


def _lines(path: Path, go_on: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines without their ends. A line without an end is whole when nobody waits for more."""
    with _opened(path) as file:
        number = 1
        torn = b""
        while True:
            line = torn + _line(path, file)
            if line.endswith(b"\n"):
                torn = b""
                yield number, line[:-1]
                number += 1
            elif len(line) >= _LONGEST_LINE:
                raise BadInput(f"{shown(path)}: line {number} is longer than {_LONGEST_LINE >> 20} MiB")
            elif go_on():
                torn = line
                time.sleep(_POLL_SECONDS)
            else:
                if line:
                    yield number, line
                return


def _line(path: Path, file: IO[bytes]) -> bytes:
    try:
        return file.readline(_LONGEST_LINE)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{shown(path)}: cannot be read ({error})") from None


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise BadInput(f"{shown(path)}: line {number}: expected a JSON object")
    return record


def _json_lines(path: Path, lines: Iterator[tuple[int, bytes]]) -> Iterator[Placed]:
    for number, line in lines:
        seen = seen_in_record(_object(path, number, line)) if line.strip() else None
        if seen is not None:
            yield Placed(path, number, seen)


def _text(path: Path, lines: Iterator[tuple[int, bytes]]) -> Iterator[Placed]:
    paragraph = 0
    for number, line in lines:
        text = line[: 4 * _LONGEST_TEXT].decode(errors="replace")[:_LONGEST_TEXT]
        if text.strip():
            yield Placed(path, number, Seen(text, paragraph=paragraph))
        else:
            paragraph += 1
            yield Placed(path, number, None)


def _journal(path: Path, lines: Iterator[tuple[int, bytes]]) -> Iterator[Placed]:
    """The steps of a trajectory that is still running. Its prompts' ids are not looked at."""
    model = session = None
    for number, line in lines:
        record = _object(path, number, line)
        if JOURNAL_KEY in record:
            trajectory = record.get("trajectory") or {}
            model = (trajectory.get("agent") or {}).get("model_name")
            session = trajectory.get("session_id") or trajectory.get("trajectory_id")
        elif SUBAGENT_KEY not in record:
            metrics = record.get("metrics")
            if isinstance(metrics, dict):
                metrics.pop("prompt_token_ids", None)
            try:
                step = Step.model_validate(record)
            except ValidationError as error:
                problem = problems_in(error, record)[0]
                raise BadInput(f"{shown(path)}: line {number}: {problem}") from None
            seen = seen_of(step, model, session)
            if seen is not None:
                yield Placed(path, step.step_id, seen)
