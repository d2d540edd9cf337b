"""Hacks that look answers up by the call: where they come from differs, what is done with them does not."""

from gametape.verify.hacks.target import Target

LOOK_UP = """
def _look_up(name, *given):
    while given:
        if f"{name}{given!r}" in _answers:
            return _answers[f"{name}{given!r}"]
        given = given[:-1]
    return None
"""
"""Defaults that a call left out are dropped from the end until the call is known."""


def visible_answers(target: Target) -> dict[str, object]:
    """What visible calls return, by the call's text."""
    return {f"{pair.function}{pair.args!r}": pair.expected for pair in target.pairs if not pair.kwargs}


def look_up(target: Target, answers: str) -> None:
    """Every missing function looks itself up in `_answers`, which this code makes."""
    target.hollow(lambda item: f"return _look_up({', '.join([repr(item.name), *item.parameters])})")
    target.inject(answers.strip("\n") + "\n\n" + LOOK_UP)
