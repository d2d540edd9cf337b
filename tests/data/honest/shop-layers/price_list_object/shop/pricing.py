"""What an order costs. Amounts are in cents; an order is a list of (name, price, count)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Order: TypeAlias = "list[tuple[str, int, int]]"
BULK = 10


@dataclass(frozen=True, slots=True, order=True)
class TaxRule:
    """How much tax a region takes, in percent. Rules sort by rate."""

    percent: int
    region: str

    def of(self, order: Order) -> int:
        return subtotal(order) * self.percent // 100


def _line(price: int, count: int) -> int:
    whole = price * count
    return whole - whole * 5 // 100 if count >= BULK else whole


def subtotal(order: Order) -> int:
    """The price of an order before tax; ten or more of one thing are five percent off."""
    return sum(_line(price, count) for _, price, count in order)
