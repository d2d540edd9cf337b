"""One name for one thing: modules that are others under a second name, or reached through a third."""

import sys

_SAME = {
    "posix": "os",
    "_operator": "operator",
    "_io": "io",
    "_socket": "socket",
    "_signal": "signal",
    "mock": "unittest.mock",
}
_REACHED_THROUGH = {
    "os", "sys", "time", "builtins", "gc", "inspect", "subprocess", "socket", "math", "signal", "threading", "types",
}  # fmt: skip


def canonical(name: str) -> str:
    """The dotted name by which rules know something."""
    parts = name.split(".")
    parts[0] = _SAME.get(parts[0], parts[0])
    while len(parts) > 2 and parts[0] in sys.stdlib_module_names and parts[1] in _REACHED_THROUGH:
        if parts[0] == "asyncio":
            break
        parts = parts[1:]
    return ".".join(parts)
