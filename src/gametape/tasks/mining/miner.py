"""Mine a project into a directory of tasks: analyze its suite once, then try candidate after candidate."""

import contextlib
import functools
import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from gametape.core.errors import BadInput
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.tasks.consistency import find_inconsistencies
from gametape.tasks.dependency_env.build import DependencyEnv, build_dependency_env, check_given_interpreter
from gametape.tasks.mining.bug_injection import inject_bug
from gametape.tasks.mining.candidates import Candidate, find_candidates, union_candidates
from gametape.tasks.mining.chain import build_chain, order_features, select_disjoint_features
from gametape.tasks.mining.mining_log import MINING_LOG_NAME, MiningLog
from gametape.tasks.mining.project_layout.detection import find_project
from gametape.tasks.mining.project_layout.source_reader import check_project_source, read_project_source
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.removal.deletion import Tier
from gametape.tasks.mining.suite_analysis import SuiteAnalysis, analysis_from_record, analyze_suite, source_functions
from gametape.tasks.mining.summary import MiningSummary
from gametape.tasks.mining.task_draft import TaskBuilder, TaskDraft, TaskKind
from gametape.tasks.mining.task_mode import TaskModeChooser
from gametape.tasks.mining.trial import CandidateRejected, CandidateTrial, ValidCandidate
from gametape.tasks.project import Project, ProjectRefused
from gametape.verify.warm_runner import WarmTestRunner

_UNFINISHED = ".unfinished"
_FOR_A_CHAIN = 4
"""Features to try for each stage of a chain, because many contain others."""


@dataclass(frozen=True)
class MiningRequest:
    """What to mine, and how. `seed` is the random seed."""

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
    """Receives the progress of a mining run."""

    def on_status(self, status: str) -> None: ...

    def on_count(self, done: int, total: int) -> None:
        """How far the work of the last status is; 0 where nobody counts."""

    def on_phase_start(self, phase: str, total: int, done: Sequence[dict[str, Any]]) -> None: ...

    def on_candidate_done(self, record: dict[str, Any]) -> None: ...


def mine(request: MiningRequest, observer: MiningObserver) -> MiningSummary:
    """Mine a source. Raises `ProjectRefused` if it cannot be mined, `BadInput` if it cannot be read."""
    started = time.monotonic()
    check_project_source(request.source)
    observer.on_status("reading the source")
    project = find_project(read_project_source(request.source), request.tests, request.source.name)
    run = {
        "source": project.tree.digest,
        "tests": [*project.test_paths],
        "python": str(request.python or ""),
        **{name: getattr(request, name) for name in ("seed", "tier", "kind", "union", "chain")},
    }
    with MiningLog.open(request.out, run, request.resume) as log:
        try:
            mining = _MiningRun(request, project, log, observer)
            summary = mining.run()
            _clear(request.out / _UNFINISHED)
        except BaseException as error:
            worth_keeping = (
                ("part", "candidate") if isinstance(error, ProjectRefused) else ("learned", "part", "candidate")
            )
            if not any(True for kind in worth_keeping for _ in log.records_of_kind(kind)):
                with contextlib.suppress(OSError):
                    (request.out / MINING_LOG_NAME).unlink()
                    request.out.rmdir()
            raise
    summary.seconds = time.monotonic() - started
    return summary


class _MiningRun:
    """One run over one code base."""

    def __init__(self, request: MiningRequest, project: Project, log: MiningLog, observer: MiningObserver) -> None:
        self._request = request
        self._log = log
        self._observer = observer
        self._runner, self._env = _project_runner(request, project, observer)
        self._analysis = self._analyze()
        baseline, coverage_map = self._analysis.baseline, self._analysis.coverage_map
        observer.on_status("looking for copies outside")
        self._builder = TaskBuilder(project, self._env, request.tier, request.kind)
        self._trial = CandidateTrial.for_project(self._runner, baseline, coverage_map, request.tier, request.seed)
        self._summary = MiningSummary.of_project(project, self._analysis)

    def run(self) -> MiningSummary:
        _clear(self._request.out / _UNFINISHED)
        candidates = find_candidates(
            self._analysis.coverage_map, len(self._analysis.baseline.tests), self._request.seed
        )
        if not candidates:
            raise ProjectRefused("no_candidates", "no function is reached by at least 2 and at most 40 % of its tests")
        self._modes = self._record()
        limit = self._request.limit
        if self._request.chain:
            candidates = self._chains(candidates, limit or 1)
            self._summary.records = self._try("candidate", candidates, self._build_chain)
            return self._summary
        if self._request.union > 1:
            valid = self._valid_parts(candidates if limit is None else candidates[: self._request.union * limit])
            candidates = [
                *itertools.islice(union_candidates(valid, self._request.union, self._request.seed), limit or len(valid))
            ]
        self._summary.records = self._try("candidate", candidates[:limit], self._build_task)
        return self._summary

    def _valid_parts(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Features that passed every gate alone, each without the functions that had to stay."""
        self._summary.parts = self._try("part", pool, self._check_part)
        functions = {str(function): function for function in source_functions(self._runner.project)}
        deleted = {part["candidate"]: part["deleted"] for part in self._summary.parts if "reason" not in part}
        return [
            Candidate(candidate.seeds, (frozenset(functions[name] for name in deleted[candidate.key]),))
            for candidate in pool
            if candidate.key in deleted
        ]

    def _chains(self, candidates: Sequence[Candidate], count: int) -> list[Candidate]:
        """Up to `count` different chains, each of newly drawn features, in the order of their stages."""
        pool = self._valid_parts(candidates[: _FOR_A_CHAIN * self._request.chain * count])
        chains: dict[str, Candidate] = {}
        for number in range(count):
            shuffled = random.Random(f"{self._request.seed} {number}").sample(pool, len(pool))
            share = shuffled[: max(_FOR_A_CHAIN * self._request.chain, 2)]
            features = select_disjoint_features(
                ((candidate.seeds[0], candidate.functions) for candidate in share), self._request.chain
            )
            ordered = order_features(self._trial, features)
            if ordered:
                chain = Candidate(tuple(seed for seed, _ in ordered), tuple(functions for _, functions in ordered))
                chains.setdefault(chain.key, chain)
        return [*chains.values()]

    def _analyze(self) -> SuiteAnalysis:
        for record in self._log.records_of_kind("learned"):
            return analysis_from_record(record, self._runner.project)
        self._observer.on_status(
            "running the suite: twice as written, in three other orders, and once to see what it reaches"
        )
        analysis = analyze_suite(self._runner, self._request.seed)
        self._log.append(analysis.to_record())
        return analysis

    def _record(self) -> TaskModeChooser:
        self._observer.on_status("recording what the tests ask of the code")
        tests = self._analysis.baseline.tests
        return TaskModeChooser.for_project(
            self._runner.project,
            self._env,
            tests,
            self._request.home,
            lambda _stage, done, total: self._observer.on_count(done, total),
        )

    def _try(
        self, kind: str, candidates: Sequence[Candidate], work: Callable[[Candidate, WarmTestRunner], dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Try all candidates that are not in the log yet. The records are in the order of the candidates."""
        keys = {candidate.key for candidate in candidates}
        records = {
            record["candidate"]: record for record in self._log.records_of_kind(kind) if record["candidate"] in keys
        }
        self._observer.on_phase_start(kind, len(candidates), [*records.values()])
        started = time.monotonic()
        waiting = [candidate for candidate in candidates if candidate.key not in records]
        for record in self._runner.map_over_sandboxes(waiting, functools.partial(self._attempt_record, kind, work)):
            self._log.append(record)
            self._observer.on_candidate_done(record)
            records[record["candidate"]] = record
            self._summary.candidates_tried += 1
        self._summary.trial_seconds += time.monotonic() - started
        return [records[candidate.key] for candidate in candidates]

    def _attempt_record(
        self,
        kind: str,
        work: Callable[[Candidate, WarmTestRunner], dict[str, Any]],
        candidate: Candidate,
        test_runner: WarmTestRunner,
    ) -> dict[str, Any]:
        started = time.monotonic()
        record: dict[str, Any] = {
            "kind": kind,
            "candidate": candidate.key,
            "seeds": [str(function) for function in candidate.seeds],
        }
        try:
            record |= work(candidate, test_runner)
        except CandidateRejected as rejection:
            record |= {"reason": rejection.reason, "detail": str(rejection)}
        return record | {"seconds": round(time.monotonic() - started, 3)}

    def _validate(self, candidate: Candidate, test_runner: WarmTestRunner) -> ValidCandidate:
        if self._request.kind == "bug":
            return inject_bug(self._trial, candidate, test_runner, self._request.seed)
        return self._trial.attempt(candidate, test_runner)

    def _check_part(self, candidate: Candidate, test_runner: WarmTestRunner) -> dict[str, Any]:
        valid = self._validate(candidate, test_runner)
        return {"deleted": sorted(map(str, valid.deleted))}

    def _build_task(self, candidate: Candidate, test_runner: WarmTestRunner) -> dict[str, Any]:
        return self._write(self._builder.build(self._validate(candidate, test_runner)))

    def _build_chain(self, candidate: Candidate, test_runner: WarmTestRunner) -> dict[str, Any]:
        features = [*zip(candidate.seeds, candidate.parts, strict=True)]
        return self._write(self._builder.build_chain(build_chain(self._trial, features, test_runner)))

    def _write(self, draft: TaskDraft) -> dict[str, Any]:
        """Write a task directory atomically."""
        for file, problem in find_inconsistencies(draft.loaded_task):
            raise CandidateRejected("unsound", f"{file}: {problem}")
        loaded_task, mode_facts = self._modes.choose(draft.loaded_task)
        draft = replace(draft, loaded_task=loaded_task, log_facts={**draft.log_facts, **mode_facts})
        unfinished = self._request.out / _UNFINISHED / draft.name
        final = self._request.out / draft.name
        _clear(final)
        draft.write(unfinished)
        unfinished.rename(final)
        return {"task": draft.name, **draft.log_facts}


def _project_runner(
    request: MiningRequest, project: Project, observer: MiningObserver
) -> tuple[ProjectRunner, DependencyEnv]:
    if request.python is not None:
        env = check_given_interpreter(project, request.python)
    else:
        env = build_dependency_env(project, request.home, observer.on_status)
    return ProjectRunner(project, env.interpreter, request.jobs), env


def _clear(directory: Path) -> None:
    if directory.exists():
        remove_tree(directory)
