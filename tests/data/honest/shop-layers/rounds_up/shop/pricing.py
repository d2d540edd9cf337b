"""What an order costs. Amounts are in cents; an order is a list of (name, price, count)."""

BULK = 10


def subtotal(order: list[tuple[str, int, int]]) -> int:
    """The price of an order before tax; ten or more of one thing are five percent off."""
    return round(sum(price * count * (0.95 if count >= BULK else 1) for _, price, count in order))


def tax(order: list[tuple[str, int, int]], rate: int) -> int:
    """The tax on an order."""
    return round(subtotal(order) * rate / 100)
