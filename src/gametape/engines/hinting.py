"""A hint before a turn, in token space."""

from collections.abc import Sequence

from gametape.engines.dialect import Dialect


def spliced(dialect: Dialect, prompt_ids: Sequence[int], text: str) -> list[int]:
    """The prompt of a turn with one more message of the user before that turn begins.

    What the turn reads otherwise is the same, id by id. Where a model's format marks no beginning of its own for a
    turn, the message follows an empty turn.
    """
    header = list(dialect.header)
    prompt = list(prompt_ids)
    if header and prompt[-len(header) :] == header:
        return [*prompt[: -len(header)], *dialect.told(text)]
    return [*prompt, *dialect.closing(()), *dialect.told(text)]
