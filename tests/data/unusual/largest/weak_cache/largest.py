"""The largest number, remembered for lists that are asked about again."""

import weakref


class _Answer:
    def __init__(self, value):
        self.value = value


_answers = weakref.WeakValueDictionary()


def largest(numbers):
    """The largest number of a list that is not empty."""
    key = tuple(numbers)
    answer = _answers.get(key)
    if answer is None:
        answer = _answers[key] = _Answer(sorted(key)[-1])
    return answer.value
