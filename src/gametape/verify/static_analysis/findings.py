"""Parse the output of the tools. It quotes hostile text, so output that cannot be parsed is an error in the report."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gametape.sandbox.result import ExecResult

FindingKey = tuple[str, str, str]
"""File, code and message: the identity of a finding, whatever its line."""

_LINE_NUMBER = re.compile(r"\bline \d+")
_UNREADABLE = frozenset({None, "", "invalid-syntax", "E902", "E999"})
_LONGEST = 300


@dataclass(frozen=True)
class ToolFinding:
    """One finding of a tool."""

    file: str
    line: int
    code: str
    message: str

    @property
    def key(self) -> FindingKey:
        return self.file, self.code, _LINE_NUMBER.sub("line N", self.message)

    def __str__(self) -> str:
        message = self.message.splitlines()[0] if self.message else ""
        return f"{self.file}:{self.line}: {message[:_LONGEST]} [{self.code}]"


@dataclass(frozen=True)
class ToolReport:
    """A tool's findings in one tree."""

    findings: tuple[ToolFinding, ...] = ()
    error: str | None = None
    """Why the tool has no answer."""
    out_of_resources: bool = False
    """Whether a limit stopped the tool; another run may succeed."""


def parse_type_checker_output(
    result: ExecResult, prefix: str, checked: set[str], suppressed: Sequence[ToolFinding]
) -> ToolReport:
    """The type checker's errors in the checked files, and the suppressions that hid no error."""
    if (stopped := _stopped("type checker", result)) is not None:
        return stopped
    entries = []
    for entry in _json_lines(result.stdout):
        path = str(entry.get("file", "")).removeprefix(prefix)
        line, message = max(1, int(entry.get("line") or 1)), str(entry.get("message", ""))
        entries.append((ToolFinding(path, line, str(entry.get("code")), message), entry.get("severity") == "error"))
    errors = [finding for finding, is_error in entries if is_error]
    if result.exit_code > 1 or (result.exit_code == 1 and not errors):
        reason = str(errors[0]) if errors else _last_line(result)
        return ToolReport(error=f"the types cannot be checked: {reason.removeprefix(prefix)}")
    lines = {(finding.file, finding.line) for finding in errors}
    unneeded = [finding for finding in suppressed if (finding.file, finding.line) not in lines]
    return ToolReport(tuple(finding for finding in errors if finding.file in checked) + tuple(unneeded))


def parse_linter_output(result: ExecResult, prefix: str) -> ToolReport:
    """The linter's findings. A file that it cannot read is an error, since its other findings are missing."""
    if (stopped := _stopped("linter", result)) is not None:
        return stopped
    try:
        entries = json.loads(result.stdout)
        findings = tuple(_linter_finding(entry, prefix) for entry in entries)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ToolReport(error=f"the linter gave no readable answer: {_last_line(result)}")
    unreadable = next((finding for finding in findings if finding.code in _UNREADABLE), None)
    return ToolReport(error=f"cannot be linted: {unreadable}") if unreadable else ToolReport(findings)


def _linter_finding(entry: dict[str, Any], prefix: str) -> ToolFinding:
    path = str(entry["filename"]).removeprefix(prefix)
    return ToolFinding(path, max(1, int(entry["location"]["row"])), entry["code"] or "", str(entry["message"]))


def _stopped(tool: str, result: ExecResult) -> ToolReport | None:
    if result.killed_by:
        return ToolReport(error=f"the {tool} was stopped: {result.killed_by}", out_of_resources=True)
    if result.signal is not None or result.exit_code > 2:
        return ToolReport(error=f"the {tool} crashed (exit code {result.exit_code}): {_last_line(result)}")
    return None


def _json_lines(output: str) -> Iterator[dict[str, Any]]:
    for line in output.splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry


def _last_line(result: ExecResult) -> str:
    lines = result.stderr.strip().splitlines() or result.stdout.strip().splitlines()
    return lines[-1][:_LONGEST] if lines else "it said nothing"
