"""Steps from logs: ATIF files and journals, third-party JSON, plain text. Compressed files too."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.core.validation import problems_from
from gametape.record.errors import printable_path
from gametape.record.journal_format import JOURNAL_KEY, SUBAGENT_KEY, is_journal
from gametape.record.trajectory_discovery import SNIFFED_BYTES, is_directory, is_trajectory_file, select_files
from gametape.record.trajectory_file import parse_bytes, require_trajectory
from gametape.watch.log_formats import ThirdPartyLogParser
from gametape.watch.log_tail import COMPRESSED_SUFFIXES, LogTail
from gametape.watch.observed_step import ObservedStep, observed_step, observed_steps

LogFormat = Literal["auto", "atif", "jsonl", "text"]
_PLAIN_SUFFIXES = (".json", ".jsonl", ".log", ".txt")
LOG_SUFFIXES = (
    *_PLAIN_SUFFIXES,
    *(suffix + compressed for suffix in _PLAIN_SUFFIXES for compressed in COMPRESSED_SUFFIXES),
)
_LONGEST_DOCUMENT = 16 << 20
"""So much of a JSON document is read to see whether it is a log."""
_LONGEST_TEXT = 20_000
_LIST = re.compile(rb"\[\s*(\{|$)")
"""How a list of JSON objects begins, and no line of a log."""


def parse_log_format(name: str) -> LogFormat:
    match name:
        case "auto" | "atif" | "jsonl" | "text":
            return name
    raise BadInput(f"--format {name}: expected auto, atif, jsonl or text")


class LoggedStep(NamedTuple):
    """A step with its file and its number there: a line's number or an ATIF step's own. `observed` is None for a blank
    line of a text, which counts as a step."""

    file: Path
    step: int
    observed: ObservedStep | None


class LogSearch(NamedTuple):
    """The logs to read, and how many other files of the directories are left out."""

    files: list[Path]
    skipped: int


def find_logs(paths: Iterable[Path]) -> LogSearch:
    """The given files, and of each directory its trajectories or, where it has none, its logs."""
    files: list[Path] = []
    skipped = 0
    for path in paths:
        if not is_directory(path):
            files.append(path)
            continue
        inside, others = select_files(path, LOG_SUFFIXES, _is_trajectory)
        if not inside:
            inside, others = select_files(path, LOG_SUFFIXES, _is_log)
        files += inside
        skipped += others
        if not inside:
            raise BadInput(f"{printable_path(path)}: a directory without a trajectory or a log of an agent")
    return LogSearch(files, skipped)


def _is_trajectory(path: Path) -> bool:
    if path.suffix not in COMPRESSED_SUFFIXES:
        return is_trajectory_file(path)
    head = _head(path, SNIFFED_BYTES)
    return is_journal(head) or (head.lstrip()[:1] == b"{" and b'"ATIF-v' in head)


def _is_log(path: Path) -> bool:
    """Whether a file of a directory is text, or JSON in whose beginning an agent says or does something."""
    kind = Path(path.stem).suffix if path.suffix in COMPRESSED_SUFFIXES else path.suffix
    head = _head(path, _LONGEST_DOCUMENT if kind == ".json" else SNIFFED_BYTES)
    if b"\0" in head:
        return False
    if kind not in (".json", ".jsonl"):
        return bool(head.strip())
    parser = ThirdPartyLogParser()
    for _ in parser.steps(enumerate(_records_in(head), start=1)):
        pass
    return bool(parser.known)


def _head(path: Path, size: int) -> bytes:
    """The beginning of a file, in whole lines; nothing where it cannot be read."""
    try:
        with LogTail(path) as source:
            return source.read_head(size)
    except BadInput:
        return b""


def _records_in(head: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects at the beginning of a file: a whole document, or one to a line."""
    for text in (head, *head.splitlines()):
        try:
            document = json.loads(text.decode(errors="replace"))
        except (ValueError, RecursionError):
            continue
        records = document if isinstance(document, list) else [document]
        yield from (record for record in records if isinstance(record, dict))
        if text is head:
            return


def read_log(path: Path, format: LogFormat = "auto", go_on: Callable[[], bool] = lambda: False) -> Iterator[LoggedStep]:
    """The steps of one file. At its end, `go_on` says whether to wait for more; a line counts once it is whole."""
    with LogTail(path, go_on) as source:
        head = b"" if format == "text" else source.peek_first_line()
        kind = _guess_format(path, head) if format == "auto" else format
        if kind == "text":
            yield from _text_steps(source)
        elif is_journal(head):
            yield from _journal_steps(source)
        elif kind == "atif" or _LIST.match(head):
            yield from _document_steps(path, source.read_all())
        else:
            yield from _third_party_steps(path, _objects(source))


def _guess_format(path: Path, head: bytes) -> LogFormat:
    """Guess the format from the first line: a JSON object per line, one JSON document in all, or neither."""
    if b"\0" in head:
        raise BadInput(f"{printable_path(path)}: not text (--format text reads it all the same)")
    if is_journal(head) or _LIST.match(head):
        return "atif"
    if not head.startswith(b"{"):
        return "text"
    try:
        document = json.loads(head.decode(errors="replace"))
    except (ValueError, RecursionError):
        return "atif" if path.suffix == ".json" or head == b"{" else "text"
    version = document.get("schema_version")
    return "atif" if version is not None and ("steps" in document or str(version).startswith("ATIF")) else "jsonl"


def _document_steps(path: Path, data: bytes) -> Iterator[LoggedStep]:
    """The steps of one JSON document: a trajectory, or a third-party conversation."""
    if b'"schema_version"' not in data:
        try:
            document = json.loads(data.decode(errors="replace"))
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict) and ("messages" in document or "conversations" in document):
            document = [document]
        if isinstance(document, list) and all(isinstance(record, dict) for record in document):
            yield from _third_party_steps(path, enumerate(document, start=1))
            return
    trajectory = require_trajectory(parse_bytes(data), path)
    yield from (LoggedStep(path, number, observed) for number, observed in observed_steps(trajectory))


def _objects(source: LogTail) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON object of each line. The unfinished line of a killed writer at the end is ignored."""
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode(errors="replace"))
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield number, record
        elif not source.incomplete:
            raise BadInput(f"{printable_path(source.path)}: line {number}: expected a JSON object")


def _third_party_steps(path: Path, records: Iterable[tuple[int, dict[str, Any]]]) -> Iterator[LoggedStep]:
    parser = ThirdPartyLogParser()
    for number, observed in parser.steps(records):
        yield LoggedStep(path, number, observed)
    if parser.unknown and not parser.known:
        expected = "text, content, message, messages or tool_calls"
        raise BadInput(
            f"{printable_path(path)}: nothing that an agent said or did: expected {expected} in its JSON objects"
        )


def _text_steps(source: LogTail) -> Iterator[LoggedStep]:
    paragraph = 0
    for number, line in source.lines():
        text = line[: 4 * _LONGEST_TEXT].decode(errors="replace")[:_LONGEST_TEXT]
        if text.strip():
            yield LoggedStep(source.path, number, ObservedStep(text, paragraph=paragraph))
        else:
            paragraph += 1
            yield LoggedStep(source.path, number, None)


def _journal_steps(source: LogTail) -> Iterator[LoggedStep]:
    """The steps of a trajectory that is still running. Token ids of prompts are ignored."""
    model = session = None
    for number, record in _objects(source):
        if JOURNAL_KEY in record:
            trajectory = _object_in(record, "trajectory")
            model = _object_in(trajectory, "agent").get("model_name")
            session = trajectory.get("session_id") or trajectory.get("trajectory_id")
        elif SUBAGENT_KEY not in record:
            metrics = record.get("metrics")
            if isinstance(metrics, dict):
                metrics.pop("prompt_token_ids", None)
            try:
                step = Step.model_validate(record)
            except ValidationError as error:
                problem = problems_from(error, record)[0]
                raise BadInput(f"{printable_path(source.path)}: line {number}: {problem}") from None
            observed = observed_step(step, model, session)
            if observed is not None:
                yield LoggedStep(source.path, step.step_id, observed)


def _object_in(record: dict[str, Any], key: str) -> dict[str, Any]:
    inner = record.get(key)
    return inner if isinstance(inner, dict) else {}
