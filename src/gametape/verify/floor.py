"""Nothing for nothing: what the best trivial program earns on a task is the zero of its scale.

The programs are our own, so their results need no protection: one warm sandbox runs the feature's tests over each. The
best of them are then asked for fresh calls as an attempt would be.

In one process with a test, code can read which error the test waits for, and a contradiction of such a test says that
it waits for another one. So where shared tests decide, the best program may also raise whatever a test waits for.
"""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gametape.core.task import TaskTestGroup
from gametape.core.verdict import FreshCalls, TestCounts
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import result_counts
from gametape.verify.jobs import group_by_file, pytest_options
from gametape.verify.progress import NO_FLOOR, Floor, ProgressCounts, agrees_enough, fresh_share, group_progress
from gametape.verify.stage_progress import StageCounter, StageProgress, ignore_progress
from gametape.verify.trivial_programs import TrivialBody, TrivialProgram, TrivialPrograms
from gametape.verify.warm_runner import PytestRequest, WarmTestRunner

_MOST_COMBINATIONS = 40
"""Programs with different bodies in different functions that are tried."""
_BEST = 3
"""Programs that are asked for fresh calls."""

FreshAgreement = Callable[[SourceTree], FreshCalls | None]
"""The fresh calls of an attempt with these sources."""


@dataclass(frozen=True)
class _Trial:
    """A trivial program, and the results of the feature's tests over it."""

    program: TrivialProgram
    results: result_counts.Results

    @property
    def passing(self) -> frozenset[str]:
        return frozenset(test for test, result in self.results.items() if result == "passed")


def measure_floor(
    loaded_task: LoadedTask,
    confirming: Collection[str],
    seconds: float,
    fresh_agreement: FreshAgreement | None = None,
    on_progress: StageProgress = ignore_progress,
    shared: bool = False,
) -> Floor:
    """Try the trivial programs on the feature's tests. `confirming` are the tests that do not decide; the tests of one
    program may take `seconds`; `shared` says that tests decide that run in one process with the code."""
    return _FloorMeasurement(
        loaded_task, frozenset(confirming), seconds, fresh_agreement, on_progress, shared
    ).measure()


class _FloorMeasurement:
    def __init__(
        self,
        loaded_task: LoadedTask,
        confirming: frozenset[str],
        seconds: float,
        fresh_agreement: FreshAgreement | None,
        on_progress: StageProgress,
        shared: bool,
    ) -> None:
        self._on_progress = on_progress
        self._shared = shared
        self._loaded_task = loaded_task
        self._confirming = confirming
        self._seconds = seconds
        self._fresh_agreement = fresh_agreement
        self._tests = result_counts.feature_tests(loaded_task.task.tests)
        self._programs = TrivialPrograms(loaded_task)

    def measure(self) -> Floor:
        if not self._tests:
            return NO_FLOOR
        trials = [trial for trial in self._run_trials() if trial.passing and not self._is_solution(trial)]
        if not trials:
            return NO_FLOOR
        best = self._best(trials)
        if self._shared:
            best += self._with_errors(best, trials)
        fresh = {id(trial): self._ask_fresh(trial) for trial in best}
        counts = [(trial, self._counts(trial, fresh[id(trial)])) for trial in best]
        winner, won = max(counts, key=lambda pair: pair[1].raw)
        groups: dict[TaskTestGroup, float] = {}
        for trial, whole in counts:
            for group, own in self._groups(trial).items():
                groups[group] = max(groups.get(group, 0.0), group_progress(own, whole))
        passes = any(trial.passing.issuperset(self._tests) and agrees_enough(fresh[id(trial)]) for trial in best)
        return Floor(won.raw, groups, winner.program.words if won.raw else "", passes)

    def _is_solution(self, trial: _Trial) -> bool:
        """Whether an expression is all that is asked for."""
        return trial.program.computes and trial.passing.issuperset(self._tests)

    def _with_errors(self, best: Sequence[_Trial], trials: Sequence[_Trial]) -> list[_Trial]:
        """The best programs, with the error that a test waits for where it waits for one. None that would pass all:
        such a floor would leave nothing to be earned."""
        refused = frozenset[str]().union(*(trial.passing for trial in trials if trial.program.raises))
        made = [
            _Trial(
                replace(trial.program, words=f"{trial.program.words}, or raises what a test waits for"),
                {test: "passed" if test in refused else result for test, result in trial.results.items()},
            )
            for trial in best
        ]
        return [trial for trial in made if not trial.passing.issuperset(self._tests)]

    def _best(self, trials: Sequence[_Trial]) -> list[_Trial]:
        """The programs that are best on the whole feature, and the one that is best in each group."""
        ranked = sorted(trials, key=self._worth, reverse=True)[:_BEST]
        for group in self._groups(trials[0]):
            winner = max(
                trials, key=lambda trial: group_progress(self._groups(trial)[group], self._counts(trial, None))
            )
            ranked += [winner] if winner not in ranked else []
        return ranked

    def _groups(self, trial: _Trial) -> dict[TaskTestGroup, TestCounts]:
        deciding = [test for test in self._tests if test not in self._confirming]
        return result_counts.count_groups(trial.results, self._loaded_task.task.tests, deciding)

    def _worth(self, trial: _Trial) -> tuple[float, int]:
        """Programs are compared by progress; where it is 0, by the tests that pass."""
        return self._counts(trial, None).raw, len(trial.passing)

    def _counts(self, trial: _Trial, fresh: FreshCalls | None) -> ProgressCounts:
        held_out = self._loaded_task.task.tests.held_out
        deciding = [test for test in self._tests if test not in self._confirming]
        confirming = [test for test in self._tests if test in self._confirming]
        return ProgressCounts(
            result_counts.count_results(trial.results, deciding, held_out),
            result_counts.count_results(trial.results, confirming, held_out),
            fresh,
        )

    def _ask_fresh(self, trial: _Trial) -> FreshCalls | None:
        if self._fresh_agreement is None:
            return None
        tree = SourceTree(dict(trial.program.files)).overlaid_on(self._loaded_task.start)
        return self._fresh_agreement(tree.under(self._loaded_task.task.source_paths))

    def _run_trials(self) -> list[_Trial]:
        """The start, every body in all functions, and the best combination that is found function by function."""
        task = self._loaded_task
        tree = task.suite.overlaid_on(task.start)
        options = pytest_options(task.start, task.interpreter)
        self._counter = StageCounter(self._on_progress, "trying trivial programs", 1 + len(self._programs.bodies))
        with WarmTestRunner(tree, task.task.import_roots, options, task.interpreter) as runner:
            trials = [self._try(runner, self._programs.start())]
            uniform = {
                body.words: (body, self._try(runner, program))
                for body in self._programs.bodies
                if (program := self._programs.uniform(body))
            }
            uniform = self._without_work(runner, uniform)
            trials += [trial for _, trial in uniform.values()]
            useful = {words: body for words, (body, trial) in uniform.items() if trial.passing}
            if len(self._programs.missing) > 1 and len(useful) > 1:
                trials += self._combine(runner, useful, uniform)
            if self._shared:
                programs = itertools.islice(self._programs.raising_once(), _MOST_COMBINATIONS)
                trials += [self._try(runner, program) for program in programs]
        return trials

    def _without_work(
        self, runner: WarmTestRunner, uniform: Mapping[str, tuple[TrivialBody, _Trial]]
    ) -> dict[str, tuple[TrivialBody, _Trial]]:
        """The same, without expressions in functions of which they are the whole work: in place of the reference's own
        body they pass every test and agree on fresh calls. What does the work of a part is paid for it."""
        kept: dict[str, tuple[TrivialBody, _Trial]] = {}
        tried = 0
        for words, (body, trial) in uniform.items():
            kept[words] = body, trial
            if not trial.program.computes or not trial.passing or len(self._programs.missing) < 2:
                continue
            working: set[str] = set()
            for item in self._programs.missing:
                if item.qualname in body.by_function and tried < _MOST_COMBINATIONS:
                    tried += 1
                    program = self._programs.in_reference(item, body)
                    if program and self._does_the_work(self._try(runner, program)):
                        working.add(item.qualname)
            if working:
                others = {name: text for name, text in body.by_function.items() if name not in working}
                rest = replace(body, by_function=others)
                program = self._programs.uniform(rest) if others else None
                if program:
                    kept[words] = rest, self._try(runner, program)
                else:
                    del kept[words]
        return kept

    def _does_the_work(self, trial: _Trial) -> bool:
        """Apart from the tests only fresh calls can say so, and twins where tests are shared: weak tests cannot."""
        if not trial.passing.issuperset(self._tests):
            return False
        if self._fresh_agreement is None:
            return self._shared
        fresh = self._ask_fresh(trial)
        return fresh_share(fresh) is not None and agrees_enough(fresh)

    def _combine(
        self,
        runner: WarmTestRunner,
        useful: Mapping[str, TrivialBody],
        uniform: Mapping[str, tuple[TrivialBody, _Trial]],
    ) -> list[_Trial]:
        """Begin with the best body everywhere, and change the body of one function after the other where it helps."""
        first = max(useful, key=lambda words: self._worth(uniform[words][1]))
        chosen = dict.fromkeys((item.qualname for item in self._programs.missing), useful[first])
        best = uniform[first][1]
        trials: list[_Trial] = []
        for name in chosen:
            for body in useful.values():
                if body == chosen[name] or len(trials) >= _MOST_COMBINATIONS:
                    continue
                program = self._programs.combined(chosen | {name: body})
                if program is None:
                    continue
                trial = self._try(runner, program)
                trials.append(trial)
                if self._worth(trial) > self._worth(best):
                    best, chosen = trial, chosen | {name: body}
        return trials

    def _try(self, runner: WarmTestRunner, program: TrivialProgram) -> _Trial:
        files = group_by_file(self._tests)
        request = PytestRequest(
            paths=tuple(files),
            tests=tuple(self._tests),
            laid=program.files,
            seconds=self._seconds,
            silence=self._seconds,
        )
        result = runner.run(request)
        self._counter.count()
        return _Trial(program, {test: result.result(test) for test in self._tests})
