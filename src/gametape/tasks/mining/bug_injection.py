"""Inject a bug instead of deleting code: one small change that some tests notice. The same gates apply."""

import itertools
import random

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.candidates import Candidate
from gametape.tasks.mining.mutation.generator import function_mutations
from gametape.tasks.mining.suite_run import changed_files, run_suite, run_tests
from gametape.tasks.mining.trial import CandidateRejected, CandidateTrial, ValidCandidate
from gametape.verify.warm_runner import WarmTestRunner

_MOST_TRIED = 16
"""Mutations of one function that are tried before the candidate is rejected."""


def inject_bug(trial: CandidateTrial, candidate: Candidate, test_runner: WarmTestRunner, seed: int) -> ValidCandidate:
    """Mutate the seed function so that some visible and some held-out tests fail, and nothing hangs."""
    (function,) = candidate.seeds
    if copies := trial.include_copies(frozenset([function])) - {function}:
        raise CandidateRejected("leak", f"{min(copies).name} has the same body, and would tell what was changed")
    tests = trial.coverage_map.tests[function]
    original = trial.project.tree
    rng = random.Random(f"{seed} {function}")
    for mutation in itertools.islice(function_mutations(original.text(function.path), function, rng), _MOST_TRIED):
        mutated = SourceTree({function.path: mutation.source.encode()}).overlaid_on(original)
        overlay = changed_files(original, mutated)
        outcome = run_tests(test_runner, trial.baseline, overlay, trial.baseline.in_order(tests))
        if not outcome.hanging() and not trial.unsplittable({function: frozenset(outcome.failing())}):
            full_outcome = run_suite(test_runner, trial.baseline, overlay, tests)
            covers = {function: frozenset(full_outcome.failing())}
            return trial.hold_out_tests(
                candidate, mutated, frozenset([function]), full_outcome, covers, tests, test_runner
            )
    raise CandidateRejected("unnoticed", f"no change to {function.name} is noticed by two tests that can be split")
