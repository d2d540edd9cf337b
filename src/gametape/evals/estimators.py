"""The unbiased estimators pass@k and pass^k, from n attempts at a task of which c passed."""

from math import comb


def pass_at_k(n: int, c: int, k: int) -> float:
    """The probability that at least one of k attempts passes. Undefined, and a `ValueError`, where n < k."""
    _check(n, c, k)
    return 1.0 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The probability that all of k attempts pass. Undefined, and a `ValueError`, where n < k."""
    _check(n, c, k)
    return comb(c, k) / comb(n, k)


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"of {n} attempts between 0 and {max(n, 0)} can have passed, not {c}")
    if not 1 <= k <= n:
        raise ValueError(f"k must lie between 1 and the number of attempts, {n}; it is {k}")
