"""Plant a bug instead of deleting: one small change that some of the tests notice, through the same gates."""

import itertools
import random

from gametape.tasks.deletion.features import Candidate
from gametape.tasks.deletion.mutation.mutation import mutations
from gametape.tasks.deletion.running import changed, run_suite, run_tests
from gametape.tasks.deletion.trial import Find, Rejected, Trial
from gametape.verify.survey import Surveyor
from gametape.verify.tree import Tree

_MOST_TRIED = 16
"""Changes to one function, before it is given up."""


def break_it(trial: Trial, candidate: Candidate, surveyor: Surveyor, seed: int) -> Find:
    """Change the seed so that tests fail that can be shown and tests that can be hidden, and nothing hangs."""
    (function,) = candidate.seeds
    if copies := trial.without_leaks(frozenset([function])) - {function}:
        raise Rejected("leak", f"{min(copies).name} has the same body, and would tell what was changed")
    reached = trial.reached.tests[function]
    original = trial.project.tree
    rng = random.Random(f"{seed} {function}")
    for mutation in itertools.islice(mutations(original.text(function.path), function, rng), _MOST_TRIED):
        broken = Tree({function.path: mutation.source.encode()}).over(original)
        laid = changed(original, broken)
        first = run_tests(surveyor, trial.baseline, laid, trial.baseline.in_order(reached))
        if not first.hanging() and not trial.hopeless({function: frozenset(first.failing())}):
            run = run_suite(surveyor, trial.baseline, laid, reached)
            covers = {function: frozenset(run.failing())}
            return trial.settle(candidate, broken, frozenset([function]), run, covers, reached, surveyor)
    raise Rejected("unnoticed", f"no change to {function.name} is noticed by two tests that can be told apart")
