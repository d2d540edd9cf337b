"""Plant a bug instead of deleting: one small change that some of the tests notice, through the same gates."""

import itertools
import random

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.candidates import Candidate
from gametape.tasks.mining.mutation.generator import function_mutations
from gametape.tasks.mining.suite_run import changed_files, run_suite, run_tests
from gametape.tasks.mining.trial import CandidateRejected, CandidateTrial, ValidCandidate
from gametape.verify.warm_runner import WarmTestRunner

_MOST_TRIED = 16
"""Changes to one function, before it is given up."""


def inject_bug(trial: CandidateTrial, candidate: Candidate, surveyor: WarmTestRunner, seed: int) -> ValidCandidate:
    """Change the seed so that tests fail that can be shown and tests that can be hidden, and nothing hangs."""
    (function,) = candidate.seeds
    if copies := trial.include_copies(frozenset([function])) - {function}:
        raise CandidateRejected("leak", f"{min(copies).name} has the same body, and would tell what was changed")
    reached = trial.coverage_map.tests[function]
    original = trial.project.tree
    rng = random.Random(f"{seed} {function}")
    for mutation in itertools.islice(function_mutations(original.text(function.path), function, rng), _MOST_TRIED):
        broken = SourceTree({function.path: mutation.source.encode()}).overlaid_on(original)
        laid = changed_files(original, broken)
        first = run_tests(surveyor, trial.baseline, laid, trial.baseline.in_order(reached))
        if not first.hanging() and not trial.unsplittable({function: frozenset(first.failing())}):
            run = run_suite(surveyor, trial.baseline, laid, reached)
            covers = {function: frozenset(run.failing())}
            return trial.hold_out_tests(candidate, broken, frozenset([function]), run, covers, reached, surveyor)
    raise CandidateRejected("unnoticed", f"no change to {function.name} is noticed by two tests that can be told apart")
