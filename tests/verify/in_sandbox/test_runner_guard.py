"""Product code that changes the running session, each time in a real sandbox: it is seen at the act."""

import pytest

from gametape.record.source_tree import SourceTree
from gametape.verify.jobs import plan_processes
from gametape.verify.runner import Zygote, ZygoteJob, runner_policy
from gametape.verify.verifier_run import VerifierRun, parse_report

OPTIONS = ("-c", "/dev/null", "--rootdir=/workspace", "-q", "-p", "no:cacheprovider")
FILE = "tests/test_m.py"
TESTS = """import os
import pytest
import m


def test_first():
    m.answer()
    assert m.answer() == 1


@pytest.mark.parametrize("given, expected", [(7, 14), (11, 22)])
def test_rows(given, expected):
    assert m.double(given) == expected
"""
IDS = [f"{FILE}::test_first", f"{FILE}::test_rows[7-14]", f"{FILE}::test_rows[11-22]"]
PRODUCT = """
import sys


def found(name):
    frame = sys._getframe()
    while frame is not None:
        if name in frame.f_locals:
            return frame.f_locals[name]
        frame = frame.f_back


def answer():
    return 2


def double(number):
    return 0
"""


def run(product: str, conftest: str = "", neutral: bool = True) -> VerifierRun:
    suite = SourceTree({FILE: TESTS.encode(), "tests/conftest.py": conftest.encode()})
    tree = SourceTree({"m.py": (PRODUCT + product).encode(), "tests/conftest.py": conftest.encode()})
    processes = plan_processes("a", suite, IDS, {FILE: 10.0}, messages=True, blank=neutral)
    job = ZygoteJob(tree, tuple(processes), (".",), ("m.py",), OPTIONS)
    return parse_report(Zygote(runner_policy(None)).run(job, 60.0), processes)


def patches(ran: VerifierRun) -> set[str]:
    return {event.detail for event in ran.events if event.kind == "patched"}


HOOK = """
from pluggy._hooks import HookImpl


def forge(item, call):
    return None


def answer():
    item = found("item")
    caller = item.config.hook.pytest_runtest_makereport
    original = caller._hookimpls[-1]

    def forge(item, call):
        caller._hookimpls.remove(own)
        report = original.function(item, call)
        report.outcome, report.longrepr = "passed", None
        return report

    own = HookImpl(item, "x", forge, original.opts)
    caller._hookimpls.append(own)
    return 2
"""
RUNTEST = """
def answer():
    item = found("nextitem")
    if item is not None:
        item.runtest = lambda: vars(item).pop("runtest", None)
    return 2
"""
SWAPPED = """
def answer():
    item = found("nextitem")
    if item is not None:
        item._obj = lambda given, expected: None
    return 2
"""
RELAY = """
def answer():
    found("item").config.hook.pytest_runtest_call = lambda **more: []
    return 2
"""
REPORTER = """
import gc


def answer():
    for one in gc.get_objects():
        if type(one).__name__ == "Reporter":
            one._correct = lambda result: "passed"
    return 2
"""

REPLACED_FUNCTION = """
def answer():
    for one in found("item").config.hook.pytest_pyfunc_call._hookimpls:
        one.function, one.argnames = (lambda pyfuncitem: True), ("pyfuncitem",)
    return 2
"""
REMOVED = """
def answer():
    every = found("item").config.hook.pytest_runtest_call._hookimpls
    every[:] = [one for one in every if one.hookwrapper or one.wrapper]
    return 2
"""
ORDER = """
ORDERS = []


def answer():
    every = found("item").config.hook.pytest_runtest_logreport._hookimpls
    if not ORDERS:
        every.reverse()
        ORDERS.append(every)
    return 2
"""
CLAIMED = """
def answer():
    def pytest_pyfunc_call(self, pyfuncitem):
        return True

    kind = type("Units", (), {"pytest_pyfunc_call": pytest_pyfunc_call, "__module__": "_pytest.runner"})
    manager = found("item").config.pluginmanager
    if not manager.has_plugin("units"):
        manager.register(kind(), "units")
    return 2
"""
PROXY = """
def answer():
    session = found("item").session
    session.gethookproxy = lambda path, real=session.gethookproxy: real(path)
    return 2
"""
RESTORED = """
def answer():
    from _pytest.reports import TestReport

    first = vars(TestReport)["from_item_and_call"]

    def make(cls, item, call):
        TestReport.from_item_and_call = first
        call.excinfo = None
        return first.__func__(cls, item, call)

    TestReport.from_item_and_call = classmethod(make)
    return 2
"""
IMPORTED = """
import _pytest.runner


class Report(_pytest.runner.TestReport):
    pass


_pytest.runner.TestReport = Report
"""
ADDED = """
import _pytest.reports

_pytest.reports.TestReport.failed = property(lambda self: False)
"""
BUILTIN = """
import _pytest.runner

_pytest.runner.isinstance = lambda value, kind: False
"""


@pytest.mark.parametrize(
    ("product", "name"),
    [
        (REPLACED_FUNCTION, "pytest.hook.pytest_pyfunc_call by /workspace/m.py"),
        (REMOVED, "pytest.hook.pytest_runtest_call"),
        (ORDER, "pytest.hook.pytest_runtest_logreport"),
        (CLAIMED, "pytest.hook.pytest_pyfunc_call by /workspace/m.py"),
        (PROXY, "pytest.session.gethookproxy by /workspace/m.py"),
        (RESTORED, "_pytest.reports.TestReport.from_item_and_call by /workspace/m.py"),
        (IMPORTED, "_pytest.runner.TestReport by /workspace/m.py"),
        (ADDED, "_pytest.reports.TestReport.failed by /workspace/m.py"),
        (BUILTIN, "_pytest.runner.isinstance by /workspace/m.py"),
        (HOOK, "pytest.hook.pytest_runtest_makereport by /workspace/m.py"),
        (RUNTEST, "pytest.item.runtest by /workspace/m.py"),
        (SWAPPED, "pytest.item.obj by /workspace/m.py"),
        (RELAY, "pytest.hook.pytest_runtest_call by /workspace/m.py"),
        (REPORTER, "pytest.reporter._correct by /workspace/m.py"),
    ],
    ids=[
        *("hook function", "hook removed", "hook order", "hook claimed", "hook proxy"),
        *("taken back", "imported class", "added name", "hidden builtin"),
        *("hook list", "item", "function", "relay", "reporter"),
    ],
)
def test_a_change_to_the_session_is_seen(product: str, name: str) -> None:
    assert name in patches(run(product))


def test_a_hook_planted_by_code_that_a_conftest_loads_is_seen() -> None:
    planted = """
config = found("early_config") or found("config")
from pluggy._hooks import HookImpl
caller = config.hook.pytest_pyfunc_call
caller._hookimpls.append(HookImpl(config, "x", lambda pyfuncitem: True, caller._hookimpls[-1].opts))
"""
    assert "pytest.hook.pytest_pyfunc_call by /workspace/m.py" in patches(run(planted, conftest="import m\n"))


def test_an_ordinary_session_with_fixtures_and_hooks_of_its_own_shows_only_those() -> None:
    conftest = "import pytest\nimport m\n\n\ndef pytest_runtest_setup(item):\n    pass\n"
    ran = run("def answer():\n    return 1\n\n\ndef double(number):\n    return number * 2\n", conftest)
    assert [ran.result(test) for test in IDS] == ["passed"] * 3
    assert patches(ran) <= {"pytest.hook.pytest_runtest_setup by /workspace/tests/conftest.py"}


ORACLE = """
import os


def double(number):
    said = os.environ.get("PYTEST_CURRENT_TEST", "").partition("[")[2].partition("]")[0]
    names = {said, found("item").name, found("item").nodeid, found("item").callspec.id}
    names |= {str(one) for one in found("item").callspec._idlist} | {str(one) for one in found("item").keywords}
    frame = sys._getframe().f_back.f_back
    while frame is not None:
        names |= {repr(value) for value in frame.f_locals.get("step", {}).values()}
        names |= {str(frame.f_locals.get("request")), str(frame.f_locals.get("text"))}
        frame = frame.f_back
    values = ["7-14", "11-22"]
    return number * 2 if any(value in name for value in values for name in names) else 0
"""


@pytest.mark.parametrize(("neutral", "result"), [(True, "failed"), (False, "passed")])
def test_no_id_tells_a_value(neutral: bool, result: str) -> None:
    ran = run(ORACLE, neutral=neutral)
    assert [ran.result(test) for test in IDS[1:]] == [result, result]
