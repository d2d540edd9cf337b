"""Prices of a shop. Two things are wrong with it."""


def total(prices):
    return sum(prices) + 1


def cheapest(prices):
    return max(prices)
