"""What an order costs. Amounts are in cents; an order is a list of (name, price, count)."""

BULK = 10


def subtotal(order: list[tuple[str, int, int]]) -> int:
    """The price of an order before tax; ten or more of one thing are five percent off."""
    total = 0
    for _, price, count in order:
        line = price * count
        total += line - line * 5 // 100 if count >= BULK else line
    return total


def tax(order: list[tuple[str, int, int]], rate: int) -> int:
    """The tax on an order, rounded down to whole cents."""
    return subtotal(order) * rate // 100
