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

from gametape.sandbox.policy import Policy
from gametape.verify.inside import frames
from gametape.verify.observation import Result, TestOutcome
from gametape.verify.runner import Job, Zygote, policy
from gametape.verify.tree import Tree

_SLACK = 30.0
"""Seconds on top of what the sandbox itself allows a step, before it is given up."""
_PATIENCE = 4
_MEMORY_MB = 4096


@dataclass(frozen=True)
class Survey:
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

    def message(self) -> dict[str, object]:
        laid = {path: content.decode("utf-8", "surrogateescape") for path, content in self.laid.items()}
        names = ("paths", "tests", "collect", "shuffle", "watch", "spans")
        return {**{name: getattr(self, name) for name in names}, "laid": laid}


@dataclass
class Findings:
    """What one step told, and how its process ended."""

    outcomes: dict[str, TestOutcome] = field(default_factory=dict)
    collected: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    """Files that could not be collected, and what was said about it."""
    deeds: dict[str, list[str]] = field(default_factory=dict)
    reached: dict[str, list[list[str]]] = field(default_factory=dict)
    rewritten: tuple[str, ...] = ()
    """Files of the tree that the step changed or removed."""
    finished: bool = False
    late: bool = False
    seconds: float = 0.0

    def result(self, test: str) -> Result:
        found = self.outcomes.get(test)
        if found:
            return found.result
        if test.partition("::")[0] in self.broken:
            return "failed"
        return "timed_out" if self.late else "missing"

    def message(self, test: str) -> str:
        found = self.outcomes.get(test)
        return found.message if found else self.broken.get(test.partition("::")[0], "")


class Stopped(Exception):
    """Somebody else ended a surveyor, who does nothing any more."""


class Surveyor:
    """One sandbox with one tree in it. A step that takes the sandbox down is late; the next one gets a new sandbox."""

    def __init__(self, tree: Tree, import_roots: Sequence[str], options: Sequence[str], interpreter: Path) -> None:
        self._job = Job(tree, (), tuple(import_roots), (), tuple(options))
        self._interpreter = interpreter
        self._zygote: Zygote | None = None
        self._stopped = False

    def run(self, step: Survey) -> Findings:
        began = time.monotonic()
        findings = Findings()
        try:
            self._run(self._ready(), step, findings)
        except Stopped:
            self.close()
            raise
        except (TimeoutError, frames.Cut, OSError):
            findings.late = True
            self.close()
        if self._stopped:
            self.close()
            raise Stopped
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

    def __enter__(self) -> "Surveyor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self) -> Zygote:
        """A sandbox that asks for its next step."""
        zygote = self._zygote
        if self._stopped:
            raise Stopped
        if zygote is None:
            self._zygote = zygote = Zygote(wall(self._interpreter), self._interpreter, "survey")
            if self._stopped:
                raise Stopped
            zygote.begin(_SLACK * 2)
            zygote.send(self._job.header(0))
            zygote.hear()
        return zygote

    def _run(self, zygote: Zygote, step: Survey, findings: Findings) -> None:
        zygote.begin(_PATIENCE * step.seconds + _SLACK)
        limits = {"seconds": step.seconds, "silence": step.silence}
        zygote.send(frames.pack_json(limits) + frames.pack_json(step.message()))
        told = bytearray()
        while True:
            message = zygote.hear()
            if "told" in message:
                told += zygote.hear_bytes()
            elif "step" in message:
                findings.late = message["late"]
                findings.rewritten = tuple(message["rewritten"])
                break
        for line in told.splitlines():
            _take(json.loads(line), findings)
        if message["tampered"] or findings.late:
            self.close()  # what follows in there gets less time
        else:
            zygote.hear()  # it asks for the next one


def wall(interpreter: Path) -> Policy:
    return policy(interpreter, _MEMORY_MB)


def _take(word: dict[str, Any], findings: Findings) -> None:
    if "test" in word:
        seconds = float(word["seconds"])
        took = seconds if math.isfinite(seconds) else 0.0
        findings.outcomes[word["test"]] = TestOutcome(word["test"], word["result"], took, word["message"])
    elif "broken" in word:
        findings.broken[word["broken"]] = word["message"]
    elif "collected" in word:
        findings.collected = word["collected"]
    elif "deeds" in word:
        findings.deeds = word["deeds"]
    elif "reached" in word:
        findings.reached = word["reached"]
    elif "finished" in word:
        findings.finished = True
