from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.suite_analysis import SuiteAnalysis, source_functions

from .made import around, project_of


def reached(learned: SuiteAnalysis, name: str) -> set[str]:
    (function,) = (one for one in learned.coverage_map.tests if one.qualname == name)
    return {test.rpartition("::")[2] for test in learned.coverage_map.tests[function]}


def protected(learned: SuiteAnalysis) -> set[str]:
    return {one.qualname for one in learned.coverage_map.protected}


def test_a_function_has_the_tests_that_run_it(learned: SuiteAnalysis) -> None:
    assert reached(learned, "counted") == {"test_counted", "test_counted_nothing"}
    assert reached(learned, "noted") == {"test_noted_large", "test_noted_larger", "test_noted_small", "test_noted_none"}


def test_one_that_others_call_has_the_tests_that_come_so_far(learned: SuiteAnalysis) -> None:
    assert reached(learned, "_split") == reached(learned, "counted")
    assert reached(learned, "_note") == {"test_noted_large", "test_noted_larger"}


def test_every_row_of_a_parametrised_test_counts(learned: SuiteAnalysis) -> None:
    assert reached(learned, "rounded") == {"test_rounded[4]", "test_rounded[5]", "test_rounded[6]"}


def test_what_runs_once_in_a_process_is_reached_by_the_first_of_each_file(learned: SuiteAnalysis) -> None:
    assert reached(learned, "_build") == {"test_one", "test_four"}


def test_what_runs_at_import_is_protected(learned: SuiteAnalysis) -> None:
    assert protected(learned) == {"register"}


def test_a_function_that_no_test_runs_is_not_there(learned: SuiteAnalysis) -> None:
    assert "register" not in {one.qualname for one in learned.coverage_map.tests}


def test_only_sources_have_functions_to_delete() -> None:
    project = project_of(around("def helper():\n    value = 1\n    return value\n\ndef test_it():\n    helper()\n"))
    assert source_functions(project) == [Function("shelf/__init__.py", 1, "twice", 1, 2, 3)]


def test_tests_among_the_sources_are_none() -> None:
    files = around("")
    inside = {**files, "shelf/tests/test_it.py": "def test_it():\n    value = 1\n    assert value\n"}
    del inside["tests/test_it.py"]
    assert [one.qualname for one in source_functions(project_of(inside))] == ["twice"]
