"""A gain is claimed where the number of held-out episodes can tell it from none, and nowhere else."""

from gametape.studio.comparison import compare_scores

from .runs import score


def test_a_clear_gain_is_said_with_its_interval() -> None:
    comparison = compare_scores(score(640, 0.3), score(640, 0.8), "RLVR", "RLVR+TTF")
    assert comparison.gained
    assert 0 < comparison.low < comparison.gain < comparison.high < 1
    assert comparison.sentence.startswith("RLVR+TTF ended 50.0 points above RLVR (95 % interval ")
    assert comparison.sentence.endswith("at equal compute.")


def test_a_difference_within_the_noise_is_no_gain() -> None:
    comparison = compare_scores(score(640, 0.50, episodes=100), score(640, 0.54, episodes=100), "RLVR", "RLVR+TTF")
    assert not comparison.gained
    assert comparison.low < 0 < comparison.high
    assert "did not gain over RLVR in this run" in comparison.sentence
    assert "+4.0 points is within the noise" in comparison.sentence


def test_a_loss_is_said_to_be_one() -> None:
    comparison = compare_scores(score(640, 0.8), score(640, 0.3), "RLVR", "RLVR+TTF")
    assert not comparison.gained
    assert "did not gain over RLVR in this run: 50.0 points below" in comparison.sentence


def test_equal_compute_is_said_only_of_equal_compute() -> None:
    comparison = compare_scores(score(640, 0.3), score(1280, 0.8), "RLVR", "RLVR+TTF")
    assert comparison.sentence.endswith("with 2.00 times the compute.")
    no_budget = {key: value for key, value in score(640, 0.3).items() if key != "flops"}
    assert compare_scores(no_budget, score(640, 0.8), "RLVR", "RLVR+TTF").sentence.endswith("compute not recorded.")


def test_two_that_never_succeed_are_not_told_apart() -> None:
    assert not compare_scores(score(640, 0.0), score(640, 0.0), "RLVR", "RLVR+TTF").gained
