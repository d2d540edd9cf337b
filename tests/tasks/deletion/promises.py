"""What a find promises, looked at once more from the start, in sandboxes of its own."""

from collections.abc import Iterable, Mapping

from gametape.tasks.deletion.functions import Function
from gametape.tasks.deletion.site import Site
from gametape.tasks.deletion.task_making import restored
from gametape.tasks.deletion.trial import Find
from gametape.verify.jobs import by_file, options
from gametape.verify.survey import Survey, Surveyor
from gametape.verify.tree import Tree


def over(site: Site, tree: Tree) -> Surveyor:
    return Surveyor(tree, site.project.import_roots, options(tree, site.interpreter), site.interpreter)


def results(surveyor: Surveyor, tests: Iterable[str], laid: Mapping[str, bytes]) -> set[str]:
    """What becomes of tests, in a process per file."""
    found: set[str] = set()
    for file, ids in by_file(tests).items():
        findings = surveyor.run(Survey((file,), ids, laid))
        found |= {findings.result(test) for test in ids}
    return found


def all_pass(surveyor: Surveyor, tests: tuple[str, ...]) -> bool:
    """In one process: these test files do not mind each other."""
    findings = surveyor.run(Survey(tuple(by_file(tests)), tests))
    return {findings.result(test) for test in tests} == {"passed"}


def body(site: Site, function: Function) -> str:
    """The author's lines of a function, without its signature and docstring."""
    lines = site.project.tree.text(function.path).splitlines()
    return "\n".join(lines[function.body - 1 : function.last])


def assert_kept(site: Site, find: Find) -> None:
    visible, held_out, passing = find.split.visible, find.split.held_out, find.passing
    suite = site.project.tree.under([*site.project.test_paths])
    reference = restored(site.project, find.start)
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
        seen = done.run(Survey(site.project.test_paths, collect=True)).collected
    assert {*seen} == {*visible, *passing}
    sources = [path for path in site.project.tree if path not in suite]
    assert all(reference.files[path] == site.project.tree.files[path] for path in sources)


def assert_gone(site: Site, find: Find) -> None:
    """No deleted body can be read."""
    whole = "\n".join(find.start.text(path) for path in find.start)
    for function in find.deleted:
        assert body(site, function) not in whole
