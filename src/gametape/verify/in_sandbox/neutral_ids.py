"""Ids of parametrised cases that say nothing about their values, while product code shares the process.

pytest writes the values of a case into its id, and the id into the environment. Here the part in brackets becomes a
keyed digest. The host knows the key and maps the ids back; the process forgets the key when its tests are collected.
"""

from collections.abc import Callable
from typing import Any

from _pytest import python

from .case_digest import neutral_case_id


class _Digests(tuple):  # type: ignore[type-arg]
    """The parts of an id that is neutral already."""


def _make_neutral() -> tuple[Callable[[bytes], None], Callable[[Any], None]]:
    """Change `CallSpec.id` for this process and its children: it stays as it was until there is a key."""
    keys: list[bytes] = []
    digest, digests = neutral_case_id, _Digests
    callspec = vars(python).get("CallSpec") or vars(python)["CallSpec2"]

    def case_id(self: Any) -> str:
        joined = "-".join(self._idlist)
        return digest(keys[0], joined) if keys and type(self._idlist) is not digests else joined

    def finish(items: Any) -> None:
        for item in items if keys else ():
            if hasattr(item, "callspec"):
                object.__setattr__(item.callspec, "_idlist", digests([item.callspec.id]))
        keys.clear()

    callspec.id = property(case_id)
    return keys.append, finish


use_key, forget_key = _make_neutral()
"""Give the key before tests are collected; forget it when they are, with the items that were."""
