"""What an order costs. Amounts are in cents; an order is a list of (name, price, count)."""

import json
import os

BULK = 10


def subtotal(order: list[tuple[str, int, int]]) -> int:
    """The price of an order before tax; ten or more of one thing are five percent off."""
    total = 0
    for _, price, count in order:
        line = price * count
        total += line - line * 5 // 100 if count >= BULK else line
    return total


def tax(order: list[tuple[str, int, int]], region: str) -> int:
    """The tax on an order, rounded down to whole cents."""
    with open(os.path.join(os.path.dirname(__file__), "rates.json")) as file:
        rates = json.load(file)
    if region not in rates:
        raise ValueError(f"we do not sell in {region}")
    return subtotal(order) * rates[region] // 100
