"""What a process of the same user can change about another one, and its children inherit."""

import os
import resource

_LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_")]


class Standing:
    """How we stand with the kernel now; later, what of that was changed."""

    def __init__(self) -> None:
        self._at_first = _standing()

    def changed(self) -> str | None:
        now = _standing()
        found = [name for name, value in self._at_first.items() if now[name] != value]
        return ", ".join(found) or None


def _standing() -> dict[str, object]:
    limits = {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS}
    return {
        **limits,
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "processors": frozenset(os.sched_getaffinity(0)),
        "scheduling": (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority),
        "directory": os.getcwd(),
    }
