from pathlib import Path

from gametape.verify.layers import run_layers
from gametape.verify.reward import reward
from tests.verify.layers.toy_task import run, scoring_context, toy_task

START = {"src/m.py": "def one():\n    raise NotImplementedError\n\n\ndef two():\n    return 2\n"}
REFERENCE = {"src/m.py": "def one():\n    return 1\n\n\ndef two():\n    return 2\n"}
TASK = toy_task(START, REFERENCE)


def test_an_untouched_workspace_earns_nothing(tmp_path: Path) -> None:
    idle = scoring_context(TASK, {}, feature=(0, 1), runs=(run(a="failed", b="passed"),), home=tmp_path)
    found = {check.name: check for check in run_layers(idle, "full")}
    assert found.pop("tests").score == 0.0
    assert set(found) == {"runtime", "types", "lint", "diff", "quality"}
    assert {check.score for check in found.values()} == {0.0}
    assert {check.detail for check in found.values()} == {"nothing was written"}


def test_comments_emptied_files_and_filler_earn_nothing_beside_their_tests(tmp_path: Path) -> None:
    fillers = [
        {"src/m.py": "# done\n" + START["src/m.py"]},
        {"src/m.py": ""},
        {"src/m.py": "def one(): ...\n\n\ndef two(): ...\n"},
        {"src/extra.py": "".join(f"value_{index} = {index}\n" for index in range(50))},
    ]
    for files in fillers:
        idle = scoring_context(TASK, files, feature=(0, 1), runs=(run(a="failed", b="passed"),), home=tmp_path)
        assert {check.score for check in run_layers(idle, "full") if check.name != "tests"} == {0.0}
    gone = scoring_context(
        TASK, {}, removed=["src/m.py"], feature=(0, 1), runs=(run(a="failed", b="failed"),), home=tmp_path
    )
    assert {check.score for check in run_layers(gone, "full") if check.name != "tests"} == {0.0}


def test_the_reference_is_perfect(tmp_path: Path) -> None:
    solved = scoring_context(TASK, REFERENCE, runs=(run(a="passed", b="passed"),), home=tmp_path)
    for profile, names in {"train": 2, "full": 6}.items():
        found = run_layers(solved, profile)  # type: ignore[arg-type]
        assert len(found) == names
        assert {check.score for check in found} == {1.0}
        assert reward("layered", found, [], solved.counts, {}, True) == 1.0


def test_tidiness_counts_for_the_part_that_works(tmp_path: Path) -> None:
    half = scoring_context(TASK, REFERENCE, feature=(1, 2), runs=(run(a="passed", b="passed"),), home=tmp_path)
    runtime = next(check for check in run_layers(half, "train") if check.name == "runtime")
    assert runtime.score == 0.5
    assert "times 0.50 for the tests" in runtime.detail


def test_passing_only_what_could_be_read_is_worth_nothing(tmp_path: Path) -> None:
    from dataclasses import replace

    from gametape.core.verdict import TestCounts

    solved = scoring_context(TASK, REFERENCE, runs=(run(a="passed", b="passed"),), home=tmp_path)

    def worth(visible: int, held_out: int) -> float:
        counts = TestCounts(expected=8, passed=visible + held_out, held_out_expected=4, held_out_passed=held_out)
        return replace(solved, counts=counts, feature=counts).progress

    assert worth(4, 0) == worth(0, 4) == 0.0
    assert worth(2, 2) == 0.5
    assert worth(4, 4) == 1.0
    assert worth(4, 2) < 0.75


def test_a_solution_that_only_deletes_is_work(tmp_path: Path) -> None:
    broken = {
        "src/m.py": "def one():\n    return 1\n    return 2\n\n\ndef bad():\n    return one()\n    raise ValueError\n"
    }
    task = toy_task(broken, {"src/m.py": "def one():\n    return 1\n\n\ndef bad():\n    return 1\n"})
    shorter = {"src/m.py": "def one():\n    return 1\n\n\ndef bad():\n    return one()\n"}
    solved = scoring_context(task, shorter, runs=(run(a="passed", b="passed"),), home=tmp_path)
    found = {check.name: check.score for check in run_layers(solved, "full")}
    assert found["runtime"] == found["types"] == found["lint"] == 1.0


def test_groups_are_layers_of_their_own(tmp_path: Path) -> None:
    from dataclasses import replace

    from gametape.core.verdict import TestCounts

    solved = scoring_context(TASK, REFERENCE, runs=(run(a="passed", b="passed"),), home=tmp_path)
    apart = replace(
        solved, groups={"unit": TestCounts(expected=4, passed=4), "behavioural": TestCounts(expected=2, passed=1)}
    )
    found = {check.name: check for check in run_layers(apart, "train")}
    assert found["tests.unit"].score == 1.0
    assert found["tests.behavioural"].score == 0.5
    assert "tests.integration" not in found


def test_the_tests_layer_says_what_became_of_them(tmp_path: Path) -> None:
    from dataclasses import replace

    from gametape.core.verdict import TestCounts
    from gametape.verify.layers import tests

    counts = TestCounts(expected=10, passed=6, failed=2, missing=1, timed_out=1, held_out_expected=4, held_out_passed=1)
    feature = TestCounts(expected=6, passed=3)
    check = tests.score(replace(scoring_context(TASK, REFERENCE, home=tmp_path), counts=counts, feature=feature))
    assert check is not None
    assert check.score == 0.5 * 0.75, "half of the feature, and three of the four others still pass"
    assert check.detail == (
        "6 of 10 tests passed, 1 of 4 held-out ones among them: 2 failed, 1 missing, 1 timed out; "
        "progress 0.50: harmonic mean of 3 of 6 visible; times 0.75 of the tests that passed at the start"
    )


def test_in_a_task_about_structure_alone_the_broken_rules_are_the_work(tmp_path: Path) -> None:
    from dataclasses import replace

    from gametape.core.task import Architecture
    from gametape.core.verdict import TestCounts

    start = {"src/m.py": "import json\nimport csv\n\n\ndef one():\n    return json.dumps(csv.QUOTE_ALL)\n"}
    half = {"src/m.py": "import json\n\n\ndef one():\n    return json.dumps(1)\n"}
    solved = {"src/m.py": "def one():\n    return '1'\n"}
    plain = toy_task(start, solved)
    rules = Architecture(forbidden_modules=["json", "csv"])
    task = replace(plain, task=plain.task.model_copy(update={"architecture": rules}))
    scores = []
    for files in ({}, half, solved):
        one = scoring_context(task, files, runs=(run(a="passed", b="passed"),), home=tmp_path)
        bare = replace(one, feature=TestCounts(expected=0, passed=0), counts=TestCounts(expected=2, passed=2))
        scores.append(next(check.score for check in run_layers(bare, "train") if check.name == "tests"))
    assert scores == [0.0, 0.5, 1.0]
