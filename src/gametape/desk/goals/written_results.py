"""Files of the workspace that a program of the product writes for the check to look at: results, whatever lay there.

A program that writes what results are compared with does the same. So a file counts as a result only if its name does
not say that it is compared with, and if who reads it reads another file of the check too, which nobody wrote.
"""

from collections.abc import Collection

from gametape.desk.goals.command_trace import CommandTrace
from gametape.desk.goals.deciding_files import is_compared_with, is_named_check, is_source


def written_results(trace: CommandTrace, written: Collection[str], pinned: Collection[str]) -> set[str]:
    """Those of the written files of the check that are results."""
    unwritten = {*pinned} - {*written}
    found = set()
    for path in written:
        if is_source(path, trace.tree.files[path]) or is_named_check(path) or is_compared_with(path):
            continue
        writers = trace.written_by.get(path, set())
        readers = {number for number in trace.read_by.get(path, ()) if not runs_product(trace, number, pinned)}
        compared = {other for other in unwritten if readers & trace.read_by.get(other, set())}
        if writers and compared and all(runs_product(trace, number, pinned) for number in writers):
            found.add(path)
    return found


def runs_product(trace: CommandTrace, number: int, pinned: Collection[str]) -> bool:
    """Whether a process, or one above it, runs a file of the workspace that is not one of the check."""
    return any(
        each in trace.scripts and trace.scripts[each] not in pinned for each in (number, *trace.ancestors(number))
    )
