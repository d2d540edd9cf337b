"""The tasks that come with the project, under plain pytest: is what task.toml says of their tests true?"""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.loader import load_task

from ..forked import fork_server
from .made import TASKS


def passed(subject: LoadedTask, tree: SourceTree, place: Path) -> set[str]:
    """The ids of the manifest that pass with the suite laid over a tree."""
    subject.suite.overlaid_on(tree).write_to(place)
    report = place / "report.xml"
    options = ["-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider", "-q", "-o", "junit_family=xunit1"]
    options += [f"--junitxml={report}", f"--basetemp={place}/tmp", "--continue-on-collection-errors"]
    roots = [place, *(place / root for root in subject.task.import_roots)]
    environment = {"PYTHONPATH": ":".join(map(str, roots)), "PYTHONDONTWRITEBYTECODE": "1"}
    fork_server("pytest:main").run(
        ["pytest", *options, "tests"], place, {**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    )
    cases = ElementTree.parse(report).iter("testcase")
    good = [case for case in cases if not list(case) and case.get("file")]
    return {node_id(str(case.get("file")), str(case.get("classname")), str(case.get("name"))) for case in good}


def node_id(file: str, classname: str, name: str) -> str:
    classes = classname.removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".")
    return "::".join([file, *filter(None, classes.split(".")), name])


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_the_manifest_is_true(task: Path, tmp_path: Path) -> None:
    subject = load_task(task)
    tests = subject.task.tests
    assert subject.reference is not None
    assert passed(subject, subject.reference, tmp_path / "solved") == set(tests.every)
    untouched = passed(subject, subject.start, tmp_path / "untouched")
    assert untouched.isdisjoint(tests.fail_to_pass)
    assert untouched >= set(tests.pass_to_pass)
    if subject.task.architecture is None:
        assert untouched.isdisjoint(tests.held_out)
