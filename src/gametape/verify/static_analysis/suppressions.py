"""Ways to keep the type checker quiet, taken away before it looks.

Comments lose their meaning in every tree alike, the task's own included: what they hid there is known beforehand, so
only what an attempt hid is new. A silencer is also a finding itself; it is dropped where an error turns up on its line,
so that hiding an error and having it cost the same.
"""

import re
from collections.abc import Mapping

from gametape.verify.static_analysis.findings import ToolFinding

CODE = "silenced"

_IGNORE = re.compile(rb"#([ \t]*)type([ \t]*:[ \t]*ignore)")
_PRAGMA = re.compile(rb"(?m)^([ \t]*#[ \t]*)mypy([ \t]*:)")
_UNCHECKED = re.compile(rb"\bno_type_check\b|\bnot[ \t(]+(?:typing[ \t]*\.[ \t]*)?(?:TYPE_CHECKING|MYPY)\b")

_MESSAGES = (
    (_IGNORE, "an ignore comment that hides no error"),
    (_PRAGMA, "a comment that configures the type checker"),
    (_UNCHECKED, "code that is kept from the type checker"),
)


def remove_suppressions(
    files: Mapping[str, bytes], trusted: Mapping[str, set[bytes]]
) -> tuple[dict[str, bytes], tuple[ToolFinding, ...]]:
    """The files with silencers made harmless, same line for line; and each silencer as a finding.

    A stub beside a module hides the whole module: one that the task does not bring is left out.
    """
    kept: dict[str, bytes] = {}
    found: list[ToolFinding] = []
    for path, content in files.items():
        if path.endswith(".pyi") and path not in trusted:
            if path.removesuffix("i") in files:
                found.append(ToolFinding(path, 1, CODE, "a stub hides the module beside it"))
            continue
        if path.endswith(".py") and path + "i" in files and path + "i" in trusted:
            continue  # the task's own stub speaks for the module; the checker accepts one of them
        found += _silencers(path, content)
        kept[path] = _PRAGMA.sub(rb"\1mipy\2", _IGNORE.sub(rb"#\1tipe\2", content))
    return kept, tuple(found)


def _silencers(path: str, content: bytes) -> list[ToolFinding]:
    return [
        ToolFinding(path, number, CODE, message)
        for number, line in enumerate(content.split(b"\n"), 1)
        for pattern, message in _MESSAGES
        if pattern.search(line)
    ]
