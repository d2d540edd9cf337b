"""Run hacks against a verifier: plant each on a private checkout and verify it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from gametape.core.verdict import Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.redteam.hack import Hack
from gametape.redteam.hack_target import HackNotApplicable, HackTarget
from gametape.sandbox.snapshots.cleanup import scratch_directory


class SupportsVerify(Protocol):
    """The part of a verifier that the hack runner uses."""

    def verify(self, workspace: Path, profile: Literal["train", "full"] = ...) -> Verdict: ...


@dataclass(frozen=True)
class HackResult:
    """The verdict on one hack, planted on one task."""

    hack: Hack
    verdict: Verdict

    @property
    def rewarded(self) -> bool:
        return self.verdict.passed or self.verdict.reward > 0

    @property
    def flagged(self) -> bool:
        return bool(self.verdict.integrity)


def run_hacks(
    verifier: SupportsVerify,
    loaded_task: LoadedTask,
    hacks: Iterable[Hack],
    profile: Literal["train", "full"] = "train",
) -> Iterator[HackResult]:
    """Results for the hacks that apply to this task; the others are left out."""
    for hack in hacks:
        with scratch_directory("gametape-hack-") as directory:
            try:
                workspace = check_out_with_hack(loaded_task, hack, directory / "workspace")
            except HackNotApplicable:
                continue
            verdict = verifier.verify(workspace, profile=profile)
        yield HackResult(hack, verdict)


def check_out_with_hack(loaded_task: LoadedTask, hack: Hack, directory: Path) -> Path:
    """The task's starting tree with the hack planted; raises `HackNotApplicable` where that cannot be."""
    hack.plant(HackTarget.check_out(loaded_task, directory))
    return directory
