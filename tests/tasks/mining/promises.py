"""What a find promises, looked at once more from the start, in sandboxes of its own."""

from collections.abc import Iterable, Mapping

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.task_draft import restore_sources
from gametape.tasks.mining.trial import ValidCandidate
from gametape.verify.jobs import group_by_file, pytest_options
from gametape.verify.warm_runner import PytestRequest, WarmTestRunner


def over(site: ProjectRunner, tree: SourceTree) -> WarmTestRunner:
    return WarmTestRunner(tree, site.project.import_roots, pytest_options(tree, site.interpreter), site.interpreter)


def results(surveyor: WarmTestRunner, tests: Iterable[str], laid: Mapping[str, bytes]) -> set[str]:
    """What becomes of tests, in a process per file."""
    found: set[str] = set()
    for file, ids in group_by_file(tests).items():
        findings = surveyor.run(PytestRequest((file,), ids, laid))
        found |= {findings.result(test) for test in ids}
    return found


def all_pass(surveyor: WarmTestRunner, tests: tuple[str, ...]) -> bool:
    """In one process: these test files do not mind each other."""
    findings = surveyor.run(PytestRequest(tuple(group_by_file(tests)), tests))
    return {findings.result(test) for test in tests} == {"passed"}


def body(site: ProjectRunner, function: Function) -> str:
    """The author's lines of a function, without its signature and docstring."""
    lines = site.project.tree.text(function.path).splitlines()
    return "\n".join(lines[function.body_line - 1 : function.last_line])


def assert_kept(site: ProjectRunner, find: ValidCandidate) -> None:
    visible, held_out, passing = find.split.visible, find.split.held_out, find.pass_to_pass
    suite = site.project.tree.under([*site.project.test_paths])
    reference = restore_sources(site.project, find.start)
    assert visible
    assert held_out
    assert not {*visible} & {*held_out}
    with over(site, find.start) as start:
        assert results(start, visible, {}) == {"failed"}
        assert all_pass(start, passing)
        assert results(start, held_out, suite.files) == {"failed"}
    with over(site, reference) as done:
        assert all_pass(done, (*visible, *passing))
        assert results(done, held_out, suite.files) == {"passed"}
        seen = done.run(PytestRequest(site.project.test_paths, collect=True)).collected
    assert {*seen} == {*visible, *passing}
    sources = [path for path in site.project.tree if path not in suite]
    assert all(reference.files[path] == site.project.tree.files[path] for path in sources)


def assert_gone(site: ProjectRunner, find: ValidCandidate) -> None:
    """No deleted body can be read."""
    whole = "\n".join(find.start.text(path) for path in find.start)
    for function in find.deleted:
        assert body(site, function) not in whole
