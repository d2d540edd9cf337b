"""From a source to a directory of tasks: look it over once, then try candidate after candidate."""

import contextlib
import functools
import itertools
import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gametape.core.errors import BadInput
from gametape.tasks.consistency import find_inconsistencies
from gametape.tasks.dependency_env.build import (
    DependencyEnv,
    build_dependency_env,
    check_given_interpreter,
)
from gametape.tasks.mining.bug_injection import inject_bug
from gametape.tasks.mining.candidates import Candidate, find_candidates, union_candidates
from gametape.tasks.mining.chain import build_chain, order_features, select_disjoint_features
from gametape.tasks.mining.mining_log import MINING_LOG_NAME as LEDGER
from gametape.tasks.mining.mining_log import MiningLog
from gametape.tasks.mining.project_layout.detection import find_project
from gametape.tasks.mining.project_layout.source_reader import read_project_source
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.removal.deletion import Tier
from gametape.tasks.mining.suite_analysis import SuiteAnalysis, analysis_from_record, analyze_suite, source_functions
from gametape.tasks.mining.summary import MiningSummary
from gametape.tasks.mining.task_draft import TaskBuilder, TaskDraft, TaskKind
from gametape.tasks.mining.trial import CandidateRejected, CandidateTrial, ValidCandidate
from gametape.tasks.project import Project, ProjectRefused
from gametape.verify.warm_runner import WarmTestRunner

_UNFINISHED = ".unfinished"
_FOR_A_CHAIN = 4
"""Features to try for each stage of a chain: many lie inside others."""


@dataclass(frozen=True)
class MiningRequest:
    """What to mine, and how."""

    source: Path
    out: Path
    home: Path
    limit: int | None = None
    tests: str | None = None
    seed: int = 0
    tier: Tier = "stub"
    kind: TaskKind = "deletion"
    union: int = 1
    chain: int = 0
    jobs: int = 1
    resume: bool = False
    python: Path | None = None

    def __post_init__(self) -> None:
        if self.kind == "bug" and (self.union > 1 or self.chain):
            raise BadInput("--kind bug plants one bug at a time; leave --union and --chain out")
        if self.union > 1 and self.chain:
            raise BadInput("--union and --chain are two ways to put features together; choose one")


class MiningObserver(Protocol):
    """Whoever wants to know how far it is."""

    def on_status(self, status: str) -> None: ...

    def on_phase_start(self, phase: str, total: int, done: Sequence[dict[str, Any]]) -> None: ...

    def on_candidate_done(self, record: dict[str, Any]) -> None: ...


def mine(request: MiningRequest, observer: MiningObserver) -> MiningSummary:
    """Mine a source. Raises `Refused` if it cannot be mined, `BadInput` if it cannot even be looked at."""
    began = time.monotonic()
    observer.on_status("reading the source")
    project = find_project(read_project_source(request.source), request.tests, request.source.name)
    run = {
        "source": project.tree.digest,
        "tests": [*project.test_paths],
        "python": str(request.python or ""),
        **{name: getattr(request, name) for name in ("seed", "tier", "kind", "union", "chain")},
    }
    with MiningLog.open(request.out, run, request.resume) as ledger:
        try:
            mining = _MiningRun(request, project, ledger, observer)
            summary = mining.run()
            _clear(request.out / _UNFINISHED)
        except BaseException as error:
            worth_keeping = (
                ("part", "candidate") if isinstance(error, ProjectRefused) else ("learned", "part", "candidate")
            )
            if not any(True for kind in worth_keeping for _ in ledger.records_of_kind(kind)):
                with contextlib.suppress(OSError):
                    (request.out / LEDGER).unlink()
                    request.out.rmdir()
            raise
    summary.seconds = time.monotonic() - began
    return summary


class _MiningRun:
    """One run over one code base."""

    def __init__(self, request: MiningRequest, project: Project, ledger: MiningLog, watcher: MiningObserver) -> None:
        self._request = request
        self._log = ledger
        self._observer = watcher
        self._runner, environment = _project_runner(request, project, watcher)
        self._analysis = self._analyze()
        baseline, reached = self._analysis.baseline, self._analysis.coverage_map
        watcher.on_status("looking for copies outside")
        self._builder = TaskBuilder(project, environment, request.tier, request.kind)
        self._trial = CandidateTrial.for_project(self._runner, baseline, reached, request.tier, request.seed)
        self._summary = MiningSummary.of_project(project, self._analysis)

    def run(self) -> MiningSummary:
        _clear(self._request.out / _UNFINISHED)
        wanted = find_candidates(self._analysis.coverage_map, len(self._analysis.baseline.tests), self._request.seed)
        if not wanted:
            raise ProjectRefused("no_candidates", "no function is reached by at least 2 and at most 40 % of its tests")
        limit = self._request.limit
        if self._request.chain:
            wanted = self._chains(wanted, limit or 1)
            self._summary.records = self._try("candidate", wanted, self._make_chain)
            return self._summary
        if self._request.union > 1:
            valid = self._valid_parts(wanted if limit is None else wanted[: self._request.union * limit])
            wanted = [
                *itertools.islice(union_candidates(valid, self._request.union, self._request.seed), limit or len(valid))
            ]
        self._summary.records = self._try("candidate", wanted[:limit], self._make)
        return self._summary

    def _valid_parts(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Features that went through every gate alone, each without the functions that had to stay."""
        self._summary.parts = self._try("part", pool, self._check)
        places = {str(one): one for one in source_functions(self._runner.project)}
        kept = {one["candidate"]: one["deleted"] for one in self._summary.parts if "reason" not in one}
        return [
            Candidate(one.seeds, (frozenset(places[place] for place in kept[one.key]),))
            for one in pool
            if one.key in kept
        ]

    def _chains(self, wanted: Sequence[Candidate], count: int) -> list[Candidate]:
        """Up to so many different chains, each of features drawn anew, in the order in which they will be asked for."""
        pool = self._valid_parts(wanted[: _FOR_A_CHAIN * self._request.chain * count])
        chains: dict[str, Candidate] = {}
        for number in range(count):
            drawn = random.Random(f"{self._request.seed} {number}").sample(pool, len(pool))
            share = drawn[: max(_FOR_A_CHAIN * self._request.chain, 2)]
            parts = select_disjoint_features(((one.seeds[0], one.functions) for one in share), self._request.chain)
            turns = order_features(self._trial, parts)
            if turns:
                chain = Candidate(tuple(seed for seed, _ in turns), tuple(functions for _, functions in turns))
                chains.setdefault(chain.key, chain)
        return [*chains.values()]

    def _analyze(self) -> SuiteAnalysis:
        for record in self._log.records_of_kind("learned"):
            return analysis_from_record(record, self._runner.project)
        self._observer.on_status(
            "running the suite: twice as written, in three other orders, and once to see what it reaches"
        )
        learned = analyze_suite(self._runner, self._request.seed)
        self._log.append(learned.to_record())
        return learned

    def _try(
        self, kind: str, wanted: Sequence[Candidate], work: Callable[[Candidate, WarmTestRunner], dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Try them all but those that the ledger knows; what comes back is in their order."""
        keys = {one.key for one in wanted}
        known = {
            record["candidate"]: record for record in self._log.records_of_kind(kind) if record["candidate"] in keys
        }
        self._observer.on_phase_start(kind, len(wanted), [*known.values()])
        began = time.monotonic()
        waiting = [one for one in wanted if one.key not in known]
        for record in self._runner.map_over_sandboxes(waiting, functools.partial(self._tried, kind, work)):
            self._log.append(record)
            self._observer.on_candidate_done(record)
            known[record["candidate"]] = record
            self._summary.candidates_tried += 1
        self._summary.trial_seconds += time.monotonic() - began
        return [known[one.key] for one in wanted]

    def _tried(
        self,
        kind: str,
        work: Callable[[Candidate, WarmTestRunner], dict[str, Any]],
        candidate: Candidate,
        surveyor: WarmTestRunner,
    ) -> dict[str, Any]:
        began = time.monotonic()
        record: dict[str, Any] = {
            "kind": kind,
            "candidate": candidate.key,
            "seeds": [str(one) for one in candidate.seeds],
        }
        try:
            record |= work(candidate, surveyor)
        except CandidateRejected as why:
            record |= {"reason": why.reason, "detail": str(why)}
        return record | {"seconds": round(time.monotonic() - began, 3)}

    def _validate(self, candidate: Candidate, surveyor: WarmTestRunner) -> ValidCandidate:
        if self._request.kind == "bug":
            return inject_bug(self._trial, candidate, surveyor, self._request.seed)
        return self._trial.attempt(candidate, surveyor)

    def _check(self, candidate: Candidate, surveyor: WarmTestRunner) -> dict[str, Any]:
        find = self._validate(candidate, surveyor)
        return {"deleted": sorted(map(str, find.deleted))}

    def _make(self, candidate: Candidate, surveyor: WarmTestRunner) -> dict[str, Any]:
        return self._write(self._builder.build(self._validate(candidate, surveyor)))

    def _make_chain(self, candidate: Candidate, surveyor: WarmTestRunner) -> dict[str, Any]:
        turns = [*zip(candidate.seeds, candidate.parts, strict=True)]
        return self._write(self._builder.build_chain(build_chain(self._trial, turns, surveyor)))

    def _write(self, made: TaskDraft) -> dict[str, Any]:
        """A task directory that is there whole or not at all."""
        for where, problem in find_inconsistencies(made.loaded_task):
            raise CandidateRejected("unsound", f"{where}: {problem}")
        unfinished = self._request.out / _UNFINISHED / made.name
        final = self._request.out / made.name
        _clear(final)
        made.write(unfinished)
        unfinished.rename(final)
        return {"task": made.name, **made.log_facts}


def _project_runner(
    request: MiningRequest, project: Project, watcher: MiningObserver
) -> tuple[ProjectRunner, DependencyEnv]:
    if request.python is not None:
        environment = check_given_interpreter(project, request.python)
    else:
        environment = build_dependency_env(project, request.home, watcher.on_status)
    return ProjectRunner(project, environment.interpreter, request.jobs), environment


def _clear(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)
