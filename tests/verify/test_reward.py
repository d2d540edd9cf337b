import pytest
from hypothesis import given
from hypothesis import strategies as st

from gametape.core.errors import BadInput
from gametape.core.verdict import Check, Flag, TestCounts
from gametape.verify.reward import GROUPS, WEIGHTS, reward

COUNTS = TestCounts(expected=8, passed=6, held_out_expected=4, held_out_passed=2)
SUSPECT = Flag(rule="r", severity="suspect", evidence="e")
PROVEN = Flag(rule="r", severity="proven", evidence="e")


def check(name: str, score: float) -> Check:
    return Check(name=name, score=score, detail="")


def test_the_table_sums_to_one_and_tests_dominate() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1.0, abs=1e-12)
    assert WEIGHTS["tests"] >= 0.6


def test_layered_is_the_weighted_sum() -> None:
    checks = [check(name, 1.0) for name in WEIGHTS]
    assert reward("layered", checks, [], COUNTS, {}, False) == 1.0
    checks = [check(name, 0.5 if name == "tests" else 0.0) for name in WEIGHTS]
    assert reward("layered", checks, [], COUNTS, {}, False) == pytest.approx(0.35)


def test_layers_that_did_not_run_leave_their_weight_to_the_others() -> None:
    checks = [check("tests", 1.0), check("runtime", 0.0)]
    assert reward("layered", checks, [], COUNTS, {}, False) == pytest.approx(0.70 / 0.75)
    assert reward("layered", [check("tests", 0.25)], [], COUNTS, {}, False) == 0.25


def test_groups_share_the_weight_of_the_tests() -> None:
    checks = [check("tests", 0.9), check("tests.unit", 1.0), check("tests.behavioural", 0.0), check("lint", 1.0)]
    assert reward("layered", checks, [], COUNTS, {}, False) == pytest.approx((0.35 + 0.05) / 0.75)
    own = {"tests.behavioural": 0.6, "tests.unit": 0.1, "lint": 0.3}
    assert reward("layered", checks, [], COUNTS, own, False) == pytest.approx(0.4)


def test_a_task_replaces_weights_by_name() -> None:
    checks = [check("tests", 1.0), check("lint", 0.0)]
    assert reward("layered", checks, [], COUNTS, {"lint": 0.7}, False) == pytest.approx(0.5)
    assert reward("layered", checks, [], COUNTS, {"lint": 0.0, "tests": 0.0}, False) == 0.0
    with pytest.raises(BadInput, match="'test'"):
        reward("layered", checks, [], COUNTS, {"test": 1.0}, False)


def test_pass_rate_counts_every_test_expected() -> None:
    assert reward("pass_rate", [], [], COUNTS, {}, False) == 0.75
    assert reward("pass_rate", [], [SUSPECT], COUNTS, {}, False) == 0.25
    assert reward("pass_rate", [], [], TestCounts(expected=0, passed=0), {}, False) == 0.0


def test_binary_is_one_only_for_a_pass() -> None:
    assert reward("binary", [check("tests", 1.0)], [], COUNTS, {}, True) == 1.0
    assert reward("binary", [check("tests", 1.0)], [], COUNTS, {}, False) == 0.0


def test_each_suspicion_costs_a_half_and_there_is_a_floor() -> None:
    checks = [check("tests", 1.0)]
    assert reward("layered", checks, [SUSPECT], COUNTS, {}, False) == 0.5
    assert reward("layered", checks, [SUSPECT] * 3, COUNTS, {}, False) == -0.5
    assert reward("layered", checks, [SUSPECT] * 9, COUNTS, {}, False) == -1.0


@pytest.mark.parametrize("kind", ["layered", "pass_rate", "binary"])
def test_a_proven_flag_is_minus_one(kind: str) -> None:
    assert reward(kind, [check("tests", 1.0)], [SUSPECT, PROVEN], COUNTS, {}, False) == -1.0  # type: ignore[arg-type]


@given(
    st.dictionaries(st.sampled_from([*WEIGHTS, *GROUPS]), st.floats(0, 1)),
    st.dictionaries(st.sampled_from([*WEIGHTS, *GROUPS]), st.floats(0, 1e6)),
    st.integers(0, 4),
)
def test_the_reward_stays_within_its_bounds(scores: dict[str, float], weights: dict[str, float], suspects: int) -> None:
    checks = [check(name, score) for name, score in scores.items()]
    value = reward("layered", checks, [SUSPECT] * suspects, COUNTS, weights, False)
    assert -1.0 <= value <= 1.0
    assert value <= 1.0 - 0.5 * suspects
