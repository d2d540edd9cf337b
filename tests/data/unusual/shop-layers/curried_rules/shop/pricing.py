"""What an order costs. Amounts are in cents; an order is a list of (name, price, count)."""

from functools import partial

RULES = (
    lambda price, count, amount: amount + price * count,
    lambda price, count, amount: amount - price * count * 5 // 100 if count >= 10 else amount,
)


def _line(rules, price, count):
    amount = 0
    for rule in rules:
        amount = rule(price, count, amount)
    return amount


def subtotal(order):
    """The price of an order before tax; ten or more of one thing are five percent off."""
    line = partial(_line, RULES)
    return sum(line(price, count) for _, price, count in order)


def taxed(rate):
    """A function from an order to its tax, rounded down to whole cents."""
    return lambda order: subtotal(order) * rate // 100
