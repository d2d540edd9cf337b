"""The kinds of work a desk does, each imported when one is first asked for."""

import importlib
from functools import cache

from gametape.core.errors import BadInput
from gametape.desk.errands import Work

KINDS = {
    "goal": "gametape.desk.goals.work:work",
    "turn": "gametape.desk.threads.work:work",
    "tick": "gametape.desk.heartbeats.work:work",
}


@cache
def work_of(kind: str) -> Work:
    if kind not in KINDS:
        raise BadInput(f"{kind}: no kind of work; there are {', '.join(KINDS)}")
    module, name = KINDS[kind].split(":")
    work: Work = getattr(importlib.import_module(module), name)
    return work
