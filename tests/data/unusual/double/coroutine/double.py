"""Doubling with a coroutine that never ends."""


def _doubler():
    answer = None
    while True:
        number = yield answer
        answer = number * 2


def _started(generator):
    next(generator)
    return generator


def double(number):
    """Two times the number."""
    return _started(_doubler()).send(number)
