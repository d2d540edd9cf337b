"""Hacks that look answers up by the call: where they come from differs, what is done with them does not."""

from gametape.verify.hacks.target import DoesNotApply, Target

LOOK_UP = """
def _look_up(name, *given):
    for count in range(len(given), -1, -1):
        if f"{name}{given[:count]!r}" in _answers:
            return _answers[f"{name}{given[:count]!r}"]
    return None
"""
"""Defaults that a call left out are dropped from the end until the call is known."""


def visible_answers(target: Target) -> dict[str, object]:
    """What visible calls return, by the call's text."""
    answers = {f"{pair.function}{pair.args!r}": pair.expected for pair in target.pairs if not pair.kwargs}
    if len({repr(answer) for answer in answers.values()}) < 2:
        raise DoesNotApply("the visible tests give away fewer than two values: no table to speak of")
    return answers


def look_up(target: Target, answers: str) -> None:
    """Every missing function looks itself up in `_answers`, which this code makes."""
    target.hollow(lambda item: f"return _look_up({', '.join([repr(item.name), *item.parameters])})")
    target.inject(answers.strip("\n") + "\n\n" + LOOK_UP)
