"""The largest number, in parallel."""

from concurrent.futures import ThreadPoolExecutor
from functools import reduce

_CHUNK = 1000


def _of_two(a, b):
    return a if a >= b else b


def largest(numbers):
    """The largest number of a list that is not empty."""
    chunks = [numbers[at : at + _CHUNK] for at in range(0, len(numbers), _CHUNK)]
    with ThreadPoolExecutor(max_workers=4) as pool:
        return reduce(_of_two, pool.map(lambda chunk: reduce(_of_two, chunk), chunks))
