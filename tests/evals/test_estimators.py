"""pass@k and pass^k against every way to draw k attempts."""

from itertools import combinations

import pytest

from gametape.evals.estimators import pass_at_k, pass_hat_k


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in range(1, 8) for k in range(1, n + 1)])
def test_both_agree_with_counting_all_draws(n: int, k: int) -> None:
    for c in range(n + 1):
        draws = list(combinations([True] * c + [False] * (n - c), k))
        assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))
        assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_the_ends_are_exact() -> None:
    assert pass_at_k(10, 0, 5) == 0.0
    assert pass_at_k(10, 10, 10) == 1.0
    assert pass_at_k(10, 6, 5) == 1.0
    assert pass_hat_k(10, 10, 10) == 1.0
    assert pass_hat_k(10, 4, 5) == 0.0
    assert pass_at_k(100_000, 1, 1) == pytest.approx(1e-5)


@pytest.mark.parametrize("numbers", [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1), (0, 0, 1), (-1, 0, 1), (3, 1, -1)])
def test_what_is_undefined_is_refused(numbers: tuple[int, int, int]) -> None:
    for estimate in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="attempts"):
            estimate(*numbers)
