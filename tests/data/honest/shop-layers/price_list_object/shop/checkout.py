"""What a customer is told."""

from shop.pricing import subtotal
from shop.storage import rule


def quote(order: list[tuple[str, int, int]], region: str) -> int:
    """What a customer pays, tax included."""
    return subtotal(order) + rule(region).of(order)


def receipt(order: list[tuple[str, int, int]], region: str) -> str:
    """The order as text, one line for each thing and two for tax and total."""
    out = "".join(f"{count} x {name}\n" for name, _, count in order)
    return f"{out}tax {_money(rule(region).of(order))}\ntotal {_money(quote(order, region))}"


def _money(cents: int) -> str:
    units, rest = divmod(cents, 100)
    return f"{units}.{rest:02d}"
