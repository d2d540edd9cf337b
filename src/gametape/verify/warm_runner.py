"""A warm sandbox that runs many pytest requests over one tree, each in a process of its own; used to mine tasks.

The tree is restored after each request. Unlike a verdict's zygote the sandbox lives on between requests, so a request
costs a fork and the time of its tests.
"""

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.record.source_tree import SourceTree
from gametape.sandbox.policy import SandboxPolicy
from gametape.verify.in_sandbox import frames
from gametape.verify.runner import Zygote, ZygoteJob, runner_policy
from gametape.verify.verifier_run import TestOutcome, TestResult

_SLACK = 30.0
"""Seconds that the host waits beyond the limit that the sandbox itself enforces."""
_CLOCK_FACTOR = 4
_MEMORY_MB = 4096


@dataclass(frozen=True)
class PytestRequest:
    """One pytest process over some test files."""

    paths: tuple[str, ...]
    tests: tuple[str, ...] = ()
    laid: Mapping[str, bytes] = field(default_factory=dict)
    """Files that only this request finds, in place of those of the tree."""
    collect: bool = False
    """Only collect the tests, do not run them."""
    shuffle: int | None = None
    watch: bool = False
    """Whether to record which tests use a network or write outside of the workspace."""
    spans: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """The lines of functions by file, to record which test reaches which function."""
    seconds: float = 60.0
    """Processor time; by the clock it may take a few times as long."""
    silence: float = 240.0
    """Seconds by the clock between the ends of two tests; a test that takes longer hangs."""

    def request(self) -> dict[str, object]:
        laid = {path: content.decode("utf-8", "surrogateescape") for path, content in self.laid.items()}
        names = ("paths", "tests", "collect", "shuffle", "watch", "spans")
        return {**{name: getattr(self, name) for name in names}, "laid": laid}


@dataclass
class PytestResult:
    """What one request reported, and how its process ended."""

    outcomes: dict[str, TestOutcome] = field(default_factory=dict)
    collected: list[str] = field(default_factory=list)
    collection_errors: dict[str, str] = field(default_factory=dict)
    """Files that could not be collected, with the message."""
    side_effects: dict[str, list[str]] = field(default_factory=dict)
    reached: dict[str, list[list[str]]] = field(default_factory=dict)
    changed_files: tuple[str, ...] = ()
    """Files of the tree that the process changed or removed."""
    finished: bool = False
    timed_out: bool = False
    seconds: float = 0.0

    def result(self, test: str) -> TestResult:
        outcome = self.outcomes.get(test)
        if outcome:
            return outcome.result
        if test.partition("::")[0] in self.collection_errors:
            return "failed"
        return "timed_out" if self.timed_out else "missing"

    def message(self, test: str) -> str:
        outcome = self.outcomes.get(test)
        return outcome.message if outcome else self.collection_errors.get(test.partition("::")[0], "")


class RunnerStopped(Exception):
    """The runner was stopped from another thread and runs nothing more."""


class WarmTestRunner:
    """One sandbox with one tree. A request that ends the sandbox has timed out; the next one gets a new sandbox."""

    def __init__(
        self, tree: SourceTree, import_roots: Sequence[str], options: Sequence[str], interpreter: Path | None
    ) -> None:
        self._job = ZygoteJob(tree, (), tuple(import_roots), (), tuple(options))
        self._interpreter = interpreter
        self._zygote: Zygote | None = None
        self._stopped = False

    def run(self, request: PytestRequest) -> PytestResult:
        began = time.monotonic()
        result = PytestResult()
        try:
            self._run(self._ready(), request, result)
        except RunnerStopped:
            self.close()
            raise
        except (TimeoutError, frames.FrameError, OSError):
            result.timed_out = True
            self.close()
        if self._stopped:
            self.close()
            raise RunnerStopped
        result.seconds = time.monotonic() - began
        return result

    def close(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote:
            zygote.close()

    def stop(self) -> None:
        """End it from another thread: the running request and every later one raise `RunnerStopped`."""
        self._stopped = True
        self.close()

    def __enter__(self) -> "WarmTestRunner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self) -> Zygote:
        """A sandbox that waits for its next request."""
        zygote = self._zygote
        if self._stopped:
            raise RunnerStopped
        if zygote is None:
            self._zygote = zygote = Zygote(warm_runner_policy(self._interpreter), self._interpreter, "warm_runner")
            if self._stopped:
                raise RunnerStopped
            zygote.begin(_SLACK * 2)
            zygote.send(self._job.header(0))
            zygote.receive()
        return zygote

    def _run(self, zygote: Zygote, request: PytestRequest, result: PytestResult) -> None:
        zygote.begin(_CLOCK_FACTOR * request.seconds + _SLACK)
        limits = {"seconds": request.seconds, "silence": request.silence}
        zygote.send(frames.pack_json(limits) + frames.pack_json(request.request()))
        output = bytearray()
        while True:
            message = zygote.receive()
            if "told" in message:
                output += zygote.receive_bytes()
            elif "step" in message:
                result.timed_out = message["late"]
                result.changed_files = tuple(message["rewritten"])
                break
        for line in output.splitlines():
            _parse_line(json.loads(line), result)
        if message["tampered"] or result.timed_out:
            self.close()  # later processes in there would get less time
        else:
            zygote.receive()  # it asks for the next request


def warm_runner_policy(interpreter: Path | None) -> SandboxPolicy:
    return runner_policy(interpreter, _MEMORY_MB)


def _parse_line(message: dict[str, Any], result: PytestResult) -> None:
    if "test" in message:
        seconds = float(message["seconds"])
        took = seconds if math.isfinite(seconds) else 0.0
        result.outcomes[message["test"]] = TestOutcome(message["test"], message["result"], took, message["message"])
    elif "broken" in message:
        result.collection_errors[message["broken"]] = message["message"]
    elif "collected" in message:
        result.collected = message["collected"]
    elif "deeds" in message:
        result.side_effects = message["deeds"]
    elif "reached" in message:
        result.reached = message["reached"]
    elif "finished" in message:
        result.finished = True
