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
from gametape.tasks.deletion.breaking import break_it
from gametape.tasks.deletion.carving.carving import Tier
from gametape.tasks.deletion.chain import apart, in_turn, link
from gametape.tasks.deletion.environments.environment import Environment, build_environment, given_environment
from gametape.tasks.deletion.features import Candidate, candidates, unions
from gametape.tasks.deletion.finding.finding import find_project
from gametape.tasks.deletion.finding.source import open_source
from gametape.tasks.deletion.learned import Learned, learn, recall
from gametape.tasks.deletion.ledger import NAME as LEDGER
from gametape.tasks.deletion.ledger import Ledger
from gametape.tasks.deletion.mapping import source_functions
from gametape.tasks.deletion.project import Project, Refused
from gametape.tasks.deletion.site import Site
from gametape.tasks.deletion.summary import Summary
from gametape.tasks.deletion.task_making import Kind, Made, Maker
from gametape.tasks.deletion.trial import Find, Rejected, Trial
from gametape.tasks.soundness import unsound
from gametape.verify.survey import Surveyor

_UNFINISHED = ".unfinished"
_FOR_A_CHAIN = 4
"""Features to try for each stage of a chain: many lie inside others."""


@dataclass(frozen=True)
class Request:
    """What to mine, and how."""

    source: Path
    out: Path
    home: Path
    limit: int | None = None
    tests: str | None = None
    seed: int = 0
    tier: Tier = "stub"
    kind: Kind = "deletion"
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


class Watcher(Protocol):
    """Whoever wants to know how far it is."""

    def says(self, what: str) -> None: ...

    def begins(self, what: str, total: int, done: Sequence[dict[str, Any]]) -> None: ...

    def tried(self, record: dict[str, Any]) -> None: ...


def mine(request: Request, watcher: Watcher) -> Summary:
    """Mine a source. Raises `Refused` if it cannot be mined, `BadInput` if it cannot even be looked at."""
    began = time.monotonic()
    watcher.says("reading the source")
    project = find_project(open_source(request.source), request.tests, request.source.name)
    run = {
        "source": project.tree.digest,
        "tests": [*project.test_paths],
        "python": str(request.python or ""),
        **{name: getattr(request, name) for name in ("seed", "tier", "kind", "union", "chain")},
    }
    with Ledger.open(request.out, run, request.resume) as ledger:
        try:
            mining = _Mining(request, project, ledger, watcher)
            summary = mining.run()
            _clear(request.out / _UNFINISHED)
        except BaseException as error:
            worth_keeping = ("part", "candidate") if isinstance(error, Refused) else ("learned", "part", "candidate")
            if not any(True for kind in worth_keeping for _ in ledger.of(kind)):
                with contextlib.suppress(OSError):
                    (request.out / LEDGER).unlink()
                    request.out.rmdir()
            raise
    summary.seconds = time.monotonic() - began
    return summary


class _Mining:
    """One run over one code base."""

    def __init__(self, request: Request, project: Project, ledger: Ledger, watcher: Watcher) -> None:
        self._request = request
        self._ledger = ledger
        self._watcher = watcher
        self._site, environment = _site(request, project, watcher)
        self._learned = self._learn()
        baseline, reached = self._learned.baseline, self._learned.reached
        watcher.says("looking for copies outside")
        self._maker = Maker(project, environment, request.tier, request.kind)
        self._trial = Trial.of(self._site, baseline, reached, request.tier, request.seed)
        self._summary = Summary.of(project, self._learned)

    def run(self) -> Summary:
        _clear(self._request.out / _UNFINISHED)
        wanted = candidates(self._learned.reached, len(self._learned.baseline.tests), self._request.seed)
        if not wanted:
            raise Refused("no_candidates", "no function is reached by at least 2 and at most 40 % of its tests")
        limit = self._request.limit
        if self._request.chain:
            wanted = self._chains(wanted, limit or 1)
            self._summary.records = self._try("candidate", wanted, self._make_chain)
            return self._summary
        if self._request.union > 1:
            valid = self._valid_parts(wanted if limit is None else wanted[: self._request.union * limit])
            wanted = [*itertools.islice(unions(valid, self._request.union, self._request.seed), limit or len(valid))]
        self._summary.records = self._try("candidate", wanted[:limit], self._make)
        return self._summary

    def _valid_parts(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Features that went through every gate alone, each without the functions that had to stay."""
        self._summary.parts = self._try("part", pool, self._check)
        places = {str(one): one for one in source_functions(self._site.project)}
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
            parts = apart(((one.seeds[0], one.functions) for one in share), self._request.chain)
            turns = in_turn(self._trial, parts)
            if turns:
                chain = Candidate(tuple(seed for seed, _ in turns), tuple(functions for _, functions in turns))
                chains.setdefault(chain.key, chain)
        return [*chains.values()]

    def _learn(self) -> Learned:
        for record in self._ledger.of("learned"):
            return recall(record, self._site.project)
        self._watcher.says(
            "running the suite: twice as written, in three other orders, and once to see what it reaches"
        )
        learned = learn(self._site, self._request.seed)
        self._ledger.add(learned.record())
        return learned

    def _try(
        self, kind: str, wanted: Sequence[Candidate], work: Callable[[Candidate, Surveyor], dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Try them all but those that the ledger knows; what comes back is in their order."""
        keys = {one.key for one in wanted}
        known = {record["candidate"]: record for record in self._ledger.of(kind) if record["candidate"] in keys}
        self._watcher.begins(kind, len(wanted), [*known.values()])
        began = time.monotonic()
        waiting = [one for one in wanted if one.key not in known]
        for record in self._site.spread(waiting, functools.partial(self._tried, kind, work)):
            self._ledger.add(record)
            self._watcher.tried(record)
            known[record["candidate"]] = record
            self._summary.tried += 1
        self._summary.trying += time.monotonic() - began
        return [known[one.key] for one in wanted]

    def _tried(
        self,
        kind: str,
        work: Callable[[Candidate, Surveyor], dict[str, Any]],
        candidate: Candidate,
        surveyor: Surveyor,
    ) -> dict[str, Any]:
        began = time.monotonic()
        record: dict[str, Any] = {
            "kind": kind,
            "candidate": candidate.key,
            "seeds": [str(one) for one in candidate.seeds],
        }
        try:
            record |= work(candidate, surveyor)
        except Rejected as why:
            record |= {"reason": why.reason, "detail": str(why)}
        return record | {"seconds": round(time.monotonic() - began, 3)}

    def _find(self, candidate: Candidate, surveyor: Surveyor) -> Find:
        if self._request.kind == "bug":
            return break_it(self._trial, candidate, surveyor, self._request.seed)
        return self._trial.attempt(candidate, surveyor)

    def _check(self, candidate: Candidate, surveyor: Surveyor) -> dict[str, Any]:
        find = self._find(candidate, surveyor)
        return {"deleted": sorted(map(str, find.deleted))}

    def _make(self, candidate: Candidate, surveyor: Surveyor) -> dict[str, Any]:
        return self._write(self._maker.make(self._find(candidate, surveyor)))

    def _make_chain(self, candidate: Candidate, surveyor: Surveyor) -> dict[str, Any]:
        turns = [*zip(candidate.seeds, candidate.parts, strict=True)]
        return self._write(self._maker.make_chain(link(self._trial, turns, surveyor)))

    def _write(self, made: Made) -> dict[str, Any]:
        """A task directory that is there whole or not at all."""
        for where, problem in unsound(made.subject):
            raise Rejected("unsound", f"{where}: {problem}")
        unfinished = self._request.out / _UNFINISHED / made.name
        final = self._request.out / made.name
        _clear(final)
        made.write(unfinished)
        unfinished.rename(final)
        return {"task": made.name, **made.facts}


def _site(request: Request, project: Project, watcher: Watcher) -> tuple[Site, Environment]:
    if request.python is not None:
        environment = given_environment(project, request.python)
    else:
        environment = build_environment(project, request.home, watcher.says)
    return Site(project, environment.interpreter, request.jobs), environment


def _clear(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)
