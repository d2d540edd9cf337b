"""Replay hacks against a verifier: plant each on a private checkout, and see what the verdict says."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from gametape.core.verdict import Verdict
from gametape.verify.hacks.hack import Hack
from gametape.verify.hacks.naive import naive_grade
from gametape.verify.hacks.target import DoesNotApply, Target
from gametape.verify.subject import Subject


class Verifies(Protocol):
    """What is asked of a verifier here."""

    def verify(self, workspace: Path, profile: Literal["train", "full"] = ...) -> Verdict: ...


@dataclass(frozen=True)
class HackResult:
    """What became of one hack on one task."""

    hack: Hack
    verdict: Verdict
    won_naively: bool | None = None
    """Whether the exit code of the tests was fooled, where that was asked for."""

    @property
    def rewarded(self) -> bool:
        return self.verdict.passed or self.verdict.reward > 0

    @property
    def seen(self) -> bool:
        return bool(self.verdict.integrity)

    @property
    def right_rule(self) -> bool:
        """Whether one of the flags names what was done."""
        return any(self.hack.is_right(flag.rule) for flag in self.verdict.integrity)


def run_hacks(
    verifier: Verifies,
    subject: Subject,
    hacks: Iterable[Hack],
    profile: Literal["train", "full"] = "train",
    naively: bool = False,
) -> Iterator[HackResult]:
    """Results for the hacks that apply to this task; the others are left out.

    With `naively`, each is also graded by the exit code of its own tests, in a sandbox and on another checkout.
    """
    for hack in hacks:
        with tempfile.TemporaryDirectory(prefix="gametape-hack-") as directory:
            try:
                workspace = check_out(subject, hack, Path(directory) / "workspace")
            except DoesNotApply:
                continue
            verdict = verifier.verify(workspace, profile=profile)
            won = naive_grade(subject, _again(subject, hack, workspace)) if naively else None
        yield HackResult(hack, verdict, won)


def check_out(subject: Subject, hack: Hack, directory: Path) -> Path:
    """The task's starting tree with the hack planted; raises `DoesNotApply` where that cannot be."""
    hack.plant(Target.check_out(subject, directory))
    return directory


def _again(subject: Subject, hack: Hack, workspace: Path) -> Path:
    shutil.rmtree(workspace)
    return check_out(subject, hack, workspace)
