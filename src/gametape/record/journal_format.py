"""The lines of a journal.

The first is a header: the format's version and the trajectory without its steps. Each line after it is one
finished step, as ATIF writes it, or the whole trajectory of a subagent of the step that follows. A turn
counts once its step's newline is there.

A turn reads everything before it again. Where its prompt begins with the prompt and the completion of the turn before,
the line says how many ids those are and gives the rest, or a journal would grow with the square of its length.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gametape.core.token_prefix import TokenPrefix, are_token_ids, as_prefix
from gametape.core.validation import Problem
from gametape.record.strict_json import InvalidJson, decode, encode

JOURNAL_KEY = "gametape_journal"
JOURNAL_VERSION = 2
_READABLE_VERSIONS = (1, 2)
"""In version 1 every prompt was written whole."""
SUBAGENT_KEY = "gametape_subagent"
_AFTER, _MORE = "gametape_after", "ids"


class ParsedJournal(NamedTuple):
    """A journal as one document, how many bytes count, and how many follow: an unfinished turn."""

    document: dict[str, Any]
    complete_bytes: int
    torn_bytes: int


_CONTINUES = f'"{_AFTER}": '.encode()
_WHOLE = b'"prompt_token_ids": ['


def is_step_line(line: bytes) -> bool:
    return not line.startswith(f'{{"{SUBAGENT_KEY}"'.encode())


def continues_prompt(line: bytes) -> bool:
    """Whether a step may have been stored without the ids that come before its prompt."""
    return _CONTINUES in line


def has_whole_prompt(line: bytes) -> bool:
    return _WHOLE in line and not continues_prompt(line)


def is_journal(data: bytes) -> bool:
    return data.startswith(f'{{"{JOURNAL_KEY}"'.encode())


def header_line(trajectory: dict[str, Any]) -> bytes:
    return encode({JOURNAL_KEY: JOURNAL_VERSION, "trajectory": trajectory | {"steps": []}})


def step_lines(steps: Sequence[dict[str, Any]]) -> bytes:
    """The lines of steps that were there before the journal was begun."""
    before = TokenPrefix()
    lines = []
    for index, step in enumerate(steps):
        lines.append(step_line(drop_prompt_prefix(step, before), index))
        before = context_after(step, before)
    return b"".join(lines)


def step_line(step: dict[str, Any], index: int) -> bytes:
    return encode(step, location=("steps", index))


def drop_prompt_prefix(step: dict[str, Any], known_ids: TokenPrefix) -> dict[str, Any]:
    """A step whose prompt begins with these ids, without them."""
    metrics = _metrics(step)
    ids = metrics.get("prompt_token_ids")
    if not isinstance(ids, list | TokenPrefix):
        return step
    return {**step, "metrics": {**metrics, "prompt_token_ids": shortened_prompt(ids, known_ids)}}


def shortened_prompt(ids: Sequence[int], known_ids: TokenPrefix) -> list[int] | dict[str, Any]:
    """A prompt as it is stored after these ids are: without them, if it begins with them."""
    if not known_ids or not as_prefix(ids).starts_with(known_ids):
        return list(ids)
    return {_AFTER: len(known_ids), _MORE: list(ids[len(known_ids) :])}


def whole_prompt(stored: Any, known_ids: TokenPrefix) -> TokenPrefix | None:
    """The prompt that was stored after these ids; None for anything else than that."""
    if isinstance(stored, list):
        if not are_token_ids(stored):
            return None
        known = len(known_ids)
        return known_ids.extended(stored[known:]) if known_ids == stored[:known] else TokenPrefix(stored)
    if not isinstance(stored, dict) or stored.keys() != {_AFTER, _MORE} or stored[_AFTER] != len(known_ids):
        return None
    return known_ids.extended(stored[_MORE]) if are_token_ids(stored[_MORE]) else None


def context_after(step: dict[str, Any], known_ids: TokenPrefix) -> TokenPrefix:
    """Prompt and completion of the last turn that has both."""
    metrics = _metrics(step)
    prompt, completion = metrics.get("prompt_token_ids"), metrics.get("completion_token_ids")
    if not isinstance(prompt, list | TokenPrefix) or not isinstance(completion, list) or not are_token_ids(completion):
        return known_ids
    return as_prefix(prompt).extended(completion)


def _metrics(step: dict[str, Any]) -> dict[str, Any]:
    metrics = step.get("metrics")
    return metrics if isinstance(metrics, dict) else {}


def restore_prompt_prefix(step: dict[str, Any], before: TokenPrefix, number: int) -> None:
    """Put the whole prompt into a step that follows these ids. One that holds anything else than ids is left as it is,
    for the validation of the step to refuse."""
    ids = _metrics(step).get("prompt_token_ids")
    prompt = whole_prompt(ids, before)
    if prompt is not None:
        step["metrics"]["prompt_token_ids"] = prompt
    elif isinstance(ids, dict):
        raise InvalidJson(Problem(f"line {number}", f"a prompt that continues {len(before)} ids"))


def subagent_line(trajectory: dict[str, Any], index: int) -> bytes:
    return encode({SUBAGENT_KEY: trajectory}, location=("subagent_trajectories", index))


def parse_journal(data: bytes) -> ParsedJournal:
    """Put a journal's lines together. An unfinished turn at the end is left out; any other is refused."""
    header, *lines = data.split(b"\n")[:-1] or [b""]
    document = parse_header(header)
    whole = len(header) + 1
    read = whole
    subagents: list[Any] = []
    before = TokenPrefix()
    for number, line in enumerate(lines, start=2):
        read += len(line) + 1
        record = decode(line, first_line=number, location=("steps", len(document["steps"])))
        if not isinstance(record, dict) or not ("step_id" in record or record.keys() == {SUBAGENT_KEY}):
            raise InvalidJson(Problem(f"line {number}", "a step or a subagent's trajectory"))
        if "step_id" not in record:
            subagents.append(record[SUBAGENT_KEY])
            continue
        restore_prompt_prefix(record, before, number)
        before = context_after(record, before)
        document["steps"].append(record)
        _embed(document, subagents)
        subagents = []
        whole = read
    return ParsedJournal(document, whole, len(data) - whole)


def _embed(document: dict[str, Any], subagents: list[Any]) -> None:
    if subagents and document.get("subagent_trajectories") is None:
        document["subagent_trajectories"] = subagents
    elif subagents and isinstance(document["subagent_trajectories"], list):
        document["subagent_trajectories"] += subagents


def parse_header(line: bytes) -> dict[str, Any]:
    if not line:
        raise InvalidJson(Problem("line 1", "a whole journal header, but it is cut off: no turn was recorded"))
    header = decode(line)
    if type(header[JOURNAL_KEY]) is not int or header[JOURNAL_KEY] not in _READABLE_VERSIONS:
        raise InvalidJson(Problem(f"line 1, {JOURNAL_KEY}", f"{JOURNAL_VERSION}, the journal version read here"))
    trajectory = header.get("trajectory")
    if not isinstance(trajectory, dict) or trajectory.get("steps") != []:
        raise InvalidJson(Problem("line 1, trajectory", "a trajectory whose steps are still empty"))
    return trajectory
