"""The largest number, by knock-out."""


def _trampoline(step):
    while callable(step):
        step = step()
    return step


def _round(numbers):
    if len(numbers) == 1:
        return numbers[0]
    winners = [a if a > b else b for a, b in zip(numbers[::2], numbers[1::2])]
    if len(numbers) % 2:
        winners.append(numbers[-1])
    return lambda: _round(winners)


def largest(numbers):
    """The largest number of a list that is not empty."""
    return _trampoline(lambda: _round(list(numbers)))
