"""The largest number, from a heap of things that sort the other way round."""

import functools
import heapq


@functools.total_ordering
class Reversed:
    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return self.number == other.number

    def __lt__(self, other):
        return self.number > other.number

    __hash__ = None


def largest(numbers):
    """The largest number of a list that is not empty."""
    heap = [Reversed(number) for number in numbers]
    heapq.heapify(heap)
    return heap[0].number
