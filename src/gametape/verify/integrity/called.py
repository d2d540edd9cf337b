"""A rule over tables whose keys are the calls of visible tests, written out.

Such a key speaks for itself, so the answers beside it may be as small as they like, and the call may have no arguments.
"""

from collections.abc import Iterator, Sequence

from gametape.verify.attempt import Attempt
from gametape.verify.integrity.expectations import visible_calls
from gametape.verify.integrity.literals import every_group
from gametape.verify.integrity.rule import Finding, over_runs
from gametape.verify.observation import Run


@over_runs(
    "special-case.table-of-calls",
    "suspect",
    "answers are kept under the text of calls that visible tests make",
    "at least two keys must read `name(arguments)` just as visible tests call the code; no program names its data so",
)
def table_of_calls(attempt: Attempt, _runs: Sequence[Run]) -> Iterator[Finding]:
    calls = visible_calls(attempt.subject)
    for path, group in every_group(attempt):
        told = {key: line for keys, _, line in group.entries for key in keys & calls}
        if len(told) >= 2:
            yield Finding(", ".join(sorted(told))[:200], file=path, line=min(told.values()))
