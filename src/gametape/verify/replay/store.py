"""Transcripts on disk, one file per test file, named by everything that they depend on.

Tasks that were mined from one package have the same reference and the same suite, so they share these files. A file
that cannot be read is as good as none: its tests are recorded again.
"""

import functools
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gametape.core.task import SplitSurface
from gametape.record.atomic import write_atomically
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.replay.transcript import Frame, Transcript
from gametape.verify.runner import IN_SANDBOX

_FORMAT = 1
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class NotReplayable:
    """Why a test is not replayed: a word that can be counted, and a detail."""

    word: str
    detail: str


@dataclass(frozen=True)
class RecordedTest:
    """What recording one test gave."""

    test: str
    passed: bool = False
    """Apart from the reference."""
    transcript: Transcript | None = None
    steady: bool = False
    isolated: bool = False
    """Steady only in a process of its own."""
    reason: NotReplayable | None = None
    seconds: float = 0.0


class TranscriptStore:
    """The recorded tests of one reference, suite and interpreter. Without a directory nothing is kept."""

    def __init__(self, directory: Path | None, loaded_task: LoadedTask, surface: SplitSurface) -> None:
        self._directory = directory
        if directory:
            directory.mkdir(parents=True, exist_ok=True)
        self._loaded_task = loaded_task
        self._common = _common_key(loaded_task, surface) if directory else ""

    def read(self, tests: Iterable[str]) -> dict[str, RecordedTest]:
        """Those of the tests that are known."""
        found: dict[str, RecordedTest] = {}
        for file, wanted in jobs.group_by_file(tests).items():
            known = self._read_file(file)
            found |= {test: known[test] for test in wanted if test in known}
        return found

    def add(self, tests: Sequence[RecordedTest]) -> None:
        by_test = {each.test: each for each in tests}
        for file, ids in jobs.group_by_file(by_test).items():
            path = self._path(file)
            if path:
                known = self._read_file(file) | {test: by_test[test] for test in ids}
                write_atomically(path, _pack(known.values()))

    def _read_file(self, file: str) -> dict[str, RecordedTest]:
        path = self._path(file)
        try:
            return {each.test: each for each in _unpack(path.read_bytes())} if path else {}
        except (OSError, ValueError, KeyError, TypeError, zlib.error):
            return {}

    def _path(self, file: str) -> Path | None:
        if self._directory is None:
            return None
        content = hashlib.sha256(self._loaded_task.suite.files[file]).hexdigest()
        return self._directory / hashlib.sha256(f"{self._common} {file} {content}".encode()).hexdigest()


def _common_key(loaded_task: LoadedTask, surface: SplitSurface) -> str:
    """Everything that the transcripts of all test files depend on."""
    task, reference, suite = loaded_task.task, loaded_task.reference, loaded_task.suite
    test_files = {jobs.file_of(test) for test in task.tests.every}
    around = loaded_task.start.without(set(loaded_task.start.under([*task.source_paths, *task.test_paths])))
    sources = (reference or SourceTree()).under(task.source_paths)
    parts = (
        _FORMAT,
        _protocol(),
        sources.without(set(sources.under(task.test_paths))).digest if reference else "",
        around.digest,
        suite.without(test_files).digest,
        task.import_roots,
        task.source_paths,
        task.test_paths,
        task.dependencies,
        "" if task.dependencies else str(loaded_task.interpreter or ""),
        jobs.pytest_options(loaded_task.start, loaded_task.interpreter),
        surface.model_dump(),
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@functools.cache
def _protocol() -> str:
    """The programs that record and answer: another version may number or encode in another way."""
    whole = hashlib.sha256()
    for path in sorted(IN_SANDBOX.glob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def _pack(tests: Iterable[RecordedTest]) -> bytes:
    """A line of JSON per test, each followed by the bodies of its frames; the whole compressed, after its hash."""
    parts = []
    for each in tests:
        frames = each.transcript.frames if each.transcript else ()
        fields = {
            "test": each.test,
            "passed": each.passed,
            "steady": each.steady,
            "isolated": each.isolated,
            "seconds": each.seconds,
            "reason": asdict(each.reason) if each.reason else None,
            "frames": [(frame.by_test, len(frame.body)) for frame in frames] if each.transcript else None,
        }
        parts += [json.dumps(fields).encode() + b"\n", *(frame.body for frame in frames)]
    packed = zlib.compress(b"".join(parts), 6)
    return hashlib.sha256(packed).digest() + packed


def _unpack(data: bytes) -> list[RecordedTest]:
    if hashlib.sha256(data[32:]).digest() != data[:32]:
        raise ValueError("damaged")
    content = zlib.decompressobj().decompress(data[32:], _MOST_BYTES)
    tests = []
    at = 0
    while at < len(content):
        end = content.index(b"\n", at)
        fields = json.loads(content[at:end])
        at = end + 1
        frames = []
        for by_test, size in fields["frames"] or ():
            frames.append(Frame(by_test, content[at : at + size]))
            at += size
        reason, recorded = fields["reason"], fields["frames"] is not None
        tests.append(
            RecordedTest(
                test=fields["test"],
                passed=fields["passed"],
                transcript=Transcript(fields["test"], tuple(frames), fields["seconds"]) if recorded else None,
                steady=fields["steady"],
                isolated=fields["isolated"],
                reason=NotReplayable(**reason) if reason else None,
                seconds=fields["seconds"],
            )
        )
    return tests
