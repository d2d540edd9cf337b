"""What an order costs. Amounts are in cents; an order is a list of (name, price, count)."""

import itertools
import operator

BULK = 10


def subtotal(order: list[tuple[str, int, int]]) -> int:
    """The price of an order before tax; ten or more of one thing are five percent off."""
    lines = list(itertools.starmap(operator.mul, (row[1:] for row in order)))
    off = (line * 5 // 100 for line, row in zip(lines, order) if row[2] >= BULK)
    return sum(lines) - sum(off)
