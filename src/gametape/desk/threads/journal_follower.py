"""Follows a journal that another process writes, step by step."""

import json
from collections.abc import Callable
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from gametape.core.step import Step

_TOKEN_FIELDS = ("prompt_token_ids", "completion_token_ids", "logprobs", "loss_mask", "policy_versions")


class JournalFollower:
    """Shows the steps that are added after it was created; `poll` shows the new ones."""

    def __init__(self, journal: Path, show: Callable[[Step], None]) -> None:
        self._journal, self._show = journal, show
        self._offset = self._whole_lines()

    def poll(self) -> None:
        """Show new steps. An incomplete line is left for the next poll; a closed journal has no more steps."""
        if self._size() <= self._offset:
            return
        with self._journal.open("rb") as file:
            file.seek(self._offset)
            complete, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(complete + newline)
        for line in complete.splitlines():
            document = json.loads(line)
            if "step_id" in document:
                self._show(_without_tokens(document))

    def _whole_lines(self) -> int:
        """The bytes up to the last newline: a line that a kill has torn is cut off and written again."""
        end = self._size()
        if not end:
            return 0
        with self._journal.open("rb") as file, mmap(file.fileno(), end, access=ACCESS_READ) as data:
            return data.rfind(b"\n") + 1

    def _size(self) -> int:
        try:
            return self._journal.stat().st_size
        except FileNotFoundError:
            return 0


def _without_tokens(document: dict[str, Any]) -> Step:
    """The step without its token ids, which the journal stores in a short form and which are not shown."""
    extra = (document.get("extra") or {}).get("gametape") or {}
    for name in _TOKEN_FIELDS:
        (document.get("metrics") or {}).pop(name, None)
        extra.pop(name, None)
    return Step.model_validate(document)
