"""Instructions that an agent changed or added, and that take nothing out of the check.

They are used as the agent left them, and told. With them the check reads every file of its own that it reads without
them, tests in the same words, fails without the product and without any program of it, and fails where its data say
something else.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from gametape.desk.goals.command_trace import CommandTrace
from gametape.desk.goals.deciding_files import DecidingFiles, is_named_check, is_source
from gametape.desk.goals.instruction_files import first_instructions, lower_instructions, may_change
from gametape.desk.goals.other_data import with_other_data
from gametape.desk.goals.shell_condition import CommandRun
from gametape.record.source_tree import SourceTree

Runner = Callable[[SourceTree], CommandRun]
"""Runs one command over a tree, traced."""
_MAX_PROGRAMS = 6


@dataclass(frozen=True)
class AcceptedInstructions:
    """Finds them among the files that were put back or taken away."""

    known: DecidingFiles
    start: SourceTree
    pinned: SourceTree
    looked_for: Collection[str]
    """Files that the command asked for in the untouched workspace, and that were not there."""
    fixed: Collection[str]
    """Files that the command or the user names: they stay as they were."""

    def find(self, run: Runner, tree: SourceTree, changed: SourceTree, added: SourceTree) -> set[str]:
        """Those of the changed and added files, if the command succeeds with them. `tree` has the pinned versions."""
        without = _complete(run(tree), tree)
        if without is None:
            return set()
        may = (lower_instructions(without) | first_instructions(without)) & set(changed) - {*self.fixed}
        may = {path for path in may if not is_named_check(path) and may_change(without, path, changed.files[path])}
        full = added.overlaid_on(changed.only(may).overlaid_on(tree))
        with_them = _complete(run(full), full)
        if with_them is None:
            return set()
        new = lower_instructions(with_them) & set(added) - {*self.looked_for}
        new = {path for path in new if _may_be_added(with_them, path) and not is_named_check(path)}
        kept = added.only(new).overlaid_on(changed.only(may))
        return set(kept) if kept.files and self._takes_nothing(run, without, kept, tree) else set()

    def _takes_nothing(self, run: Runner, without: CommandTrace, kept: SourceTree, tree: SourceTree) -> bool:
        full = kept.overlaid_on(tree)
        result = run(full)
        trace = _complete(result, full)
        if trace is None or result.exit_code != 0:
            return False
        expected = ({*without.read_by} & set(self.pinned)) | (self.known.pinned & set(self.pinned))
        if not expected - set(kept) <= set(trace.read_by):
            return False
        programs = sorted({*trace.scripts.values()} - set(self.pinned) - set(kept))[:_MAX_PROGRAMS]
        poorer = [kept.overlaid_on(self.pinned), *(full.without({path}) for path in programs)]
        data = {path for path in set(trace.read_by) & set(self.pinned) - set(kept) if self._is_data(trace, path)}
        other = with_other_data(full, data)
        return all(run(one).exit_code != 0 for one in [*poorer, *([other] if other else [])])

    def _is_data(self, trace: CommandTrace, path: str) -> bool:
        instructed = any(map(trace.runs_instructions, trace.read_by[path]))
        return not is_source(path, self.pinned.files[path]) and not instructed


def _may_be_added(run: CommandTrace, path: str) -> bool:
    return may_change(replace(run, tree=run.tree.without({path})), path, run.tree.files[path])


def _complete(run: CommandRun, tree: SourceTree) -> CommandTrace | None:
    trace = run.result.trace
    return CommandTrace(trace, tree) if trace is not None and trace.complete else None
