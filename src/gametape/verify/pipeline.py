"""The whole way from a workspace to a verdict."""

import contextlib
import random
import secrets
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gametape.core.verdict import Check, Mode, Signal, Verdict
from gametape.verify import cache, judgement
from gametape.verify.attempt import Attempt
from gametape.verify.contradiction import TwinJudgement, judge_twins
from gametape.verify.crew import Crew
from gametape.verify.export import export
from gametape.verify.integrity import flags
from gametape.verify.layers import Case, checks
from gametape.verify.observation import Run
from gametape.verify.preparation import Prepared, prepare
from gametape.verify.reward import RewardKind, reward
from gametape.verify.runner import policy
from gametape.verify.shared import run_shared
from gametape.verify.split import run_split
from gametape.verify.subject import Subject
from gametape.verify.toolbox import Toolbox

Profile = Literal["train", "full"]


class Verifier:
    """Verifies workspaces of one task. Safe to use from many threads; verdicts are kept under `home`.

    Give it a `crew` with warm zygotes to share them between verifiers; without one it starts what it needs. Where there
    is no reference to learn from, `prepared` says what is known of the task.
    """

    def __init__(
        self,
        subject: Subject,
        home: Path | None = None,
        crew: Crew | None = None,
        keep_verdicts: bool = True,
        prepared: Prepared | None = None,
    ) -> None:
        self.subject = subject
        self._stack = contextlib.ExitStack()
        self._home = home or Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="gametape-verify-")))
        self._crew = crew or self._stack.enter_context(Crew())
        self._cache = cache.Cache(home / "verdicts" if home and keep_verdicts else None)
        self._toolbox = Toolbox(self._home)
        self._policy = policy(subject.interpreter)
        self._prepared = prepared
        self._learning = threading.Lock()

    def prepared(self) -> Prepared:
        """What there is to know about the task; learned at the first call."""
        with self._learning:
            if self._prepared is None:
                self._prepared = prepare(self.subject, self._crew, self._home)
            return self._prepared

    def verify(self, workspace: Path, profile: Profile = "full", kind: RewardKind = "layered") -> Verdict:
        """Decide what a workspace is worth. Its processes must have ended."""
        began = time.monotonic()
        attempt = export(self.subject, workspace)
        name = cache.key(attempt, self._policy.hash, profile, kind)
        if kept := self._cache.find(name):
            return kept.model_copy(update={"seconds": time.monotonic() - began})
        verdict = self._decide(attempt, profile, kind, began)
        self._cache.keep(name, verdict)
        return verdict

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> "Verifier":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decide(self, attempt: Attempt, profile: Profile, kind: RewardKind, began: float) -> Verdict:
        prepared = self.prepared()
        with ThreadPoolExecutor(1) as thread:
            ahead = thread.submit(self._toolbox.look_ahead, attempt) if profile == "full" else None
            seen = _run(prepared, attempt, self._crew, profile)
            if ahead:
                ahead.result()
        tests = self.subject.task.tests
        results, torn = judgement.settle(tests.every, seen.real)
        results |= dict.fromkeys(seen.twins.unrefuted, "failed")
        counts = judgement.count_manifest(results, tests)
        feature = judgement.count(results, judgement.feature(tests), tests.held_out)
        case = Case(
            attempt=attempt,
            runs=tuple(seen.real),
            counts=counts,
            feature=feature,
            groups=judgement.groups(results, tests),
            toolbox=self._toolbox,
        )
        found = checks(case, profile)
        accused = [*flags(attempt, [prepared.unusual(run) for run in seen.every]), *seen.twins.flags]
        quarantined = bool(torn) or seen.twins.torn
        sound = not accused and not quarantined and _structure_holds(found)
        passed = sound and counts.all_passed
        worth = reward(kind, found, accused, counts, self.subject.task.weights, passed)
        return Verdict(
            passed=passed,
            reward=min(worth, 0.0) if quarantined else worth,
            checks=found,
            integrity=accused,
            signals=[*seen.twins.signals, *_torn(torn, tests.held_out), *filter(None, [judgement.gap(counts)])],
            quarantined=quarantined,
            stages=judgement.stages(results, self.subject),
            tests=counts,
            failures=judgement.failures(results, tests, seen.real[0]),
            mode=self.subject.task.mode,
            assurance=_assurance(self.subject.task.mode, prepared),
            seconds=time.monotonic() - began,
            cached=False,
            policy_hash=self._policy.hash,
        )


@dataclass(frozen=True)
class _Seen:
    """Every run of a verdict, whole and without twins, and what the twins say."""

    every: Sequence[Run]
    real: Sequence[Run]
    twins: TwinJudgement


def _run(prepared: Prepared, attempt: Attempt, crew: Crew, profile: Profile) -> _Seen:
    rng = random.Random(secrets.randbits(64))
    if prepared.subject.task.mode == "split":
        runs = [run_split(prepared, attempt.sources, crew)]
        if profile == "full" and not runs[0].broke_down:
            runs.append(run_split(prepared, attempt.sources, crew, seed=rng.randrange(1 << 60)))
        return _Seen(runs, runs, TwinJudgement())
    shared = run_shared(prepared, attempt, crew, rng, second_order=profile == "full")
    return _Seen(shared.runs, shared.real, judge_twins(prepared, attempt, crew, shared))


def _structure_holds(found: Sequence[Check]) -> bool:
    """An architecture that a task declares is a condition, beside being a layer."""
    return all(check.score == 1.0 for check in found if check.name == "architecture")


def _torn(torn: Sequence[str], held_out: Sequence[str]) -> list[Signal]:
    """Tests that did not do the same thing twice; held-out ones are not named."""
    if not torn:
        return []
    named = ", ".join(test for test in torn if test not in set(held_out)) or "held-out ones"
    return [Signal(name="flaky", detail=f"{len(torn)} tests passed in one run and not in another: {named}"[:500])]


def _assurance(mode: Mode, prepared: Prepared) -> str:
    """`high`: tests and code in sandboxes of their own; `medium`: in one process, held to its word by twins and by
    tests that nobody could read; `low`: with one of these missing."""
    if mode == "split":
        return "high"
    return "medium" if prepared.plan.validated and prepared.subject.task.tests.held_out else "low"
