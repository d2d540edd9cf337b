"""A warm sandbox that looks a code base over: many steps one after the other, each a process over a restored tree.

Unlike a verdict's zygote it lives on between steps, so a step costs a fork and what its tests take.
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
"""Seconds on top of what the sandbox itself allows a step, before it is given up."""
_PATIENCE = 4
_MEMORY_MB = 4096


@dataclass(frozen=True)
class PytestRequest:
    """One process over some test files."""

    paths: tuple[str, ...]
    tests: tuple[str, ...] = ()
    laid: Mapping[str, bytes] = field(default_factory=dict)
    """Files that only this step finds, in place of what the tree has there."""
    collect: bool = False
    """Only say which tests there are."""
    shuffle: int | None = None
    watch: bool = False
    """Whether to see what tests do to the world around them."""
    spans: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """By file the lines of functions, to be told which test reaches which."""
    seconds: float = 60.0
    """Of processor time; by the clock it may take a few times as long."""
    silence: float = 240.0
    """By the clock, between the ends of two tests: whoever takes longer hangs."""

    def request(self) -> dict[str, object]:
        laid = {path: content.decode("utf-8", "surrogateescape") for path, content in self.laid.items()}
        names = ("paths", "tests", "collect", "shuffle", "watch", "spans")
        return {**{name: getattr(self, name) for name in names}, "laid": laid}


@dataclass
class PytestResult:
    """What one step told, and how its process ended."""

    outcomes: dict[str, TestOutcome] = field(default_factory=dict)
    collected: list[str] = field(default_factory=list)
    collection_errors: dict[str, str] = field(default_factory=dict)
    """Files that could not be collected, and what was said about it."""
    side_effects: dict[str, list[str]] = field(default_factory=dict)
    reached: dict[str, list[list[str]]] = field(default_factory=dict)
    changed_files: tuple[str, ...] = ()
    """Files of the tree that the step changed or removed."""
    finished: bool = False
    timed_out: bool = False
    seconds: float = 0.0

    def result(self, test: str) -> TestResult:
        found = self.outcomes.get(test)
        if found:
            return found.result
        if test.partition("::")[0] in self.collection_errors:
            return "failed"
        return "timed_out" if self.timed_out else "missing"

    def message(self, test: str) -> str:
        found = self.outcomes.get(test)
        return found.message if found else self.collection_errors.get(test.partition("::")[0], "")


class RunnerStopped(Exception):
    """Somebody else ended a surveyor, who does nothing any more."""


class WarmTestRunner:
    """One sandbox with one tree in it. A step that takes the sandbox down is late; the next one gets a new sandbox."""

    def __init__(
        self, tree: SourceTree, import_roots: Sequence[str], options: Sequence[str], interpreter: Path
    ) -> None:
        self._job = ZygoteJob(tree, (), tuple(import_roots), (), tuple(options))
        self._interpreter = interpreter
        self._zygote: Zygote | None = None
        self._stopped = False

    def run(self, request: PytestRequest) -> PytestResult:
        began = time.monotonic()
        findings = PytestResult()
        try:
            self._run(self._ready(), request, findings)
        except RunnerStopped:
            self.close()
            raise
        except (TimeoutError, frames.FrameError, OSError):
            findings.timed_out = True
            self.close()
        if self._stopped:
            self.close()
            raise RunnerStopped
        findings.seconds = time.monotonic() - began
        return findings

    def close(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote:
            zygote.close()

    def stop(self) -> None:
        """End it from another thread: the step that runs and every later one raises `Stopped`."""
        self._stopped = True
        self.close()

    def __enter__(self) -> "WarmTestRunner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self) -> Zygote:
        """A sandbox that asks for its next step."""
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

    def _run(self, zygote: Zygote, request: PytestRequest, findings: PytestResult) -> None:
        zygote.begin(_PATIENCE * request.seconds + _SLACK)
        limits = {"seconds": request.seconds, "silence": request.silence}
        zygote.send(frames.pack_json(limits) + frames.pack_json(request.request()))
        told = bytearray()
        while True:
            message = zygote.receive()
            if "told" in message:
                told += zygote.receive_bytes()
            elif "step" in message:
                findings.timed_out = message["late"]
                findings.changed_files = tuple(message["rewritten"])
                break
        for line in told.splitlines():
            _parse_line(json.loads(line), findings)
        if message["tampered"] or findings.timed_out:
            self.close()  # what follows in there gets less time
        else:
            zygote.receive()  # it asks for the next one


def warm_runner_policy(interpreter: Path) -> SandboxPolicy:
    return runner_policy(interpreter, _MEMORY_MB)


def _parse_line(word: dict[str, Any], findings: PytestResult) -> None:
    if "test" in word:
        seconds = float(word["seconds"])
        took = seconds if math.isfinite(seconds) else 0.0
        findings.outcomes[word["test"]] = TestOutcome(word["test"], word["result"], took, word["message"])
    elif "broken" in word:
        findings.collection_errors[word["broken"]] = word["message"]
    elif "collected" in word:
        findings.collected = word["collected"]
    elif "deeds" in word:
        findings.side_effects = word["deeds"]
    elif "reached" in word:
        findings.reached = word["reached"]
    elif "finished" in word:
        findings.finished = True
