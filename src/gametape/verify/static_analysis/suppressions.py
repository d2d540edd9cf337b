"""Remove comments and files that suppress type errors before the type checker runs.

They are removed from every tree, the task's own included: errors that they hid there are in the baseline, so only those
of the submission are new. A suppression is also a finding itself, dropped where an error is on its line, so that hiding
an error costs as much as having it.
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
    """The files with suppressions disabled, with the same line numbers; and each suppression as a finding.

    A stub beside a module hides the whole module, so a stub that the task's own trees do not have is left out.
    """
    cleaned: dict[str, bytes] = {}
    findings: list[ToolFinding] = []
    for path, content in files.items():
        if path.endswith(".pyi") and path not in trusted:
            if path.removesuffix("i") in files:
                findings.append(ToolFinding(path, 1, CODE, "a stub hides the module beside it"))
            continue
        if path.endswith(".py") and path + "i" in files and path + "i" in trusted:
            continue  # the task's own stub replaces the module; the checker accepts only one of them
        findings += _find_suppressions(path, content)
        cleaned[path] = _PRAGMA.sub(rb"\1mipy\2", _IGNORE.sub(rb"#\1tipe\2", content))
    return cleaned, tuple(findings)


def _find_suppressions(path: str, content: bytes) -> list[ToolFinding]:
    return [
        ToolFinding(path, number, CODE, message)
        for number, line in enumerate(content.split(b"\n"), 1)
        for pattern, message in _MESSAGES
        if pattern.search(line)
    ]
