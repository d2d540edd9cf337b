"""Files that the check itself demands: they were not there at first, and it fails without them.

Such a file is work, and not a part of the check, unless it takes something out of the check. With it the command reads
all that it reads without it, and still fails over a tree in which nothing of the product is left.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from gametape.desk.goals.command_trace import CommandTrace
from gametape.desk.goals.deciding_files import DecidingFiles, configures_tool, is_source
from gametape.desk.goals.shell_condition import CommandRun
from gametape.record.source_tree import SourceTree

Runner = Callable[[SourceTree], CommandRun]
"""Runs one command over a tree, traced."""


@dataclass(frozen=True)
class DemandedFiles:
    """Finds them among the files that an agent added and that were taken away."""

    known: DecidingFiles
    named_missing: Collection[str]
    """Files of which the command said at first that they are missing."""
    pinned: SourceTree

    def find(self, run: Runner, tree: SourceTree, added: SourceTree) -> set[str]:
        """Those of the added files that a command demands, if it needs no other one. `tree` is without them."""
        without, with_them = _read_trace(run(tree), tree), _read_trace(run(added.overlaid_on(tree)), tree, added)
        if without is None or with_them is None:
            return set()
        demanded = {path for path in added if self._is_demanded(with_them, path)}
        if not demanded or not self._reads(without) <= self._reads(with_them):
            return set()
        bare = added.only(demanded).overlaid_on(self.pinned)
        if run(bare).exit_code == 0 and any(not _is_instruction(without, path) for path in self._reads(without)):
            return set()
        return demanded

    def _is_demanded(self, trace: CommandTrace, path: str) -> bool:
        """Whether a file is only looked for, or was said to be missing."""
        if is_source(path) or path.rpartition("/")[0] in self.known.check_directories:
            return False
        read = any(map(trace.runs_instructions, trace.read_by.get(path, ())))
        return path in self.named_missing or not (read or configures_tool(trace, path, self.known.product))

    def _reads(self, trace: CommandTrace) -> set[str]:
        """What the check reads; what programs of the product read in their own processes is left out."""
        return {
            path
            for path, numbers in trace.read_by.items()
            if any(not self._is_of_product(trace, number) for number in numbers)
        }

    def _is_of_product(self, trace: CommandTrace, number: int) -> bool:
        scripts = {trace.scripts.get(each) for each in (number, *trace.ancestors(number))} - {None}
        return any(script in self.known.product or script not in self.pinned for script in scripts)


def _read_trace(run: CommandRun, tree: SourceTree, added: SourceTree | None = None) -> CommandTrace | None:
    trace = run.result.trace
    if trace is None or not trace.complete:
        return None
    return CommandTrace(trace, added.overlaid_on(tree) if added else tree)


def _is_instruction(trace: CommandTrace, path: str) -> bool:
    return any(map(trace.runs_instructions, trace.read_by[path]))
