"""The register of rules, and what a rule is: an id, a severity, a sentence, and a function that finds places.

A rule never accuses for what the task's own tree or reference does too: the same rules run over those, and a finding
whose `key` turns up there is dropped.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gametape.core.verdict import Flag
from gametape.verify.attempt import Attempt
from gametape.verify.integrity.code import Code
from gametape.verify.integrity.view import Setting, View, own_view, product_view
from gametape.verify.observation import Run

Severity = Literal["suspect", "proven"]
FAMILIES = (
    "tests", "runner", "exit", "report", "equality", "answer", "special-case", "resources", "persistence", "network",
)  # fmt: skip
_MOST_FLAGS = 60
_MOST_OF_A_RULE = 12


@dataclass(frozen=True)
class Finding:
    """A place where a rule is broken. `key` names the construct: where it is the task's own, nobody is accused."""

    evidence: str
    file: str | None = None
    line: int | None = None
    key: str = ""
    step: int | None = None


CodeCheck = Callable[[Code, Setting], Iterator[Finding]]
TreeCheck = Callable[[Attempt], Iterator[Finding]]
RunCheck = Callable[[Attempt, Sequence[Run]], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    id: str
    severity: Severity
    sentence: str
    precise: str
    """Why an honest solution is not hit."""
    over: Literal["code", "tree", "runs", "trajectory"]
    check: Callable[..., Iterator[Finding]]

    def flag(self, finding: Finding) -> Flag:
        evidence = "".join(char if char.isprintable() else " " for char in f"{self.sentence}: {finding.evidence}")
        return Flag(
            rule=self.id,
            severity=self.severity,
            file=finding.file,
            line=finding.line,
            step=finding.step,
            evidence=evidence[:400],
        )


RULES: dict[str, Rule] = {}


def _register(
    id: str, severity: Severity, sentence: str, precise: str, over: Literal["code", "tree", "runs", "trajectory"]
) -> Callable[[Callable[..., Iterator[Finding]]], Callable[..., Iterator[Finding]]]:
    def wrap(check: Callable[..., Iterator[Finding]]) -> Callable[..., Iterator[Finding]]:
        if id in RULES or id.split(".", maxsplit=1)[0] not in FAMILIES:
            raise ValueError(f"{id}: a rule's id is its own, and begins with its family")
        RULES[id] = Rule(id, severity, sentence, precise, over, check)
        return check

    return wrap


def over_code(id: str, severity: Severity, sentence: str, precise: str) -> Callable[[CodeCheck], CodeCheck]:
    """A rule over each Python text the agent wrote below the sources."""
    return _register(id, severity, sentence, precise, "code")


def over_tree(id: str, severity: Severity, sentence: str, precise: str) -> Callable[[TreeCheck], TreeCheck]:
    """A rule over the whole workspace against the starting tree."""
    return _register(id, severity, sentence, precise, "tree")


def over_runs(id: str, severity: Severity, sentence: str, precise: str) -> Callable[[RunCheck], RunCheck]:
    """A rule over what was seen while tests ran."""
    return _register(id, severity, sentence, precise, "runs")


def over_trajectory(
    id: str, severity: Severity, sentence: str, precise: str
) -> Callable[[Callable[..., Iterator[Finding]]], Callable[..., Iterator[Finding]]]:
    """A rule over one command an agent ran."""
    return _register(id, severity, sentence, precise, "trajectory")


def flags(attempt: Attempt, runs: Sequence[Run]) -> list[Flag]:
    """Every accusation against an attempt: each once, the worst first, in the same order every time."""
    from gametape.verify.integrity import rules  # noqa: F401, PLC0415 - registers them, importing this module

    found: list[tuple[Rule, Finding]] = []
    for rule in RULES.values():
        if rule.over == "tree":
            found += [(rule, finding) for finding in rule.check(attempt)]
        elif rule.over == "runs":
            found += [(rule, finding) for finding in rule.check(attempt, runs)]
    view = product_view(attempt)
    found += _novel(code_findings(view), attempt)
    return bounded([rule.flag(finding) for rule, finding in found])


def code_findings(view: View) -> list[tuple[Rule, Finding]]:
    """What the rules over code find in some texts."""
    return [
        (rule, replace(finding, file=finding.file or code.path))
        for rule in RULES.values()
        if rule.over == "code"
        for code in view.codes
        for finding in rule.check(code, view.setting)
    ]


def _novel(found: list[tuple[Rule, Finding]], attempt: Attempt) -> list[tuple[Rule, Finding]]:
    if not found:
        return []
    own = {(rule.id, finding.key) for rule, finding in code_findings(own_view(attempt.subject)) if finding.key}
    return [(rule, finding) for rule, finding in found if (rule.id, finding.key) not in own]


def bounded(flags: list[Flag]) -> list[Flag]:
    """Each place once, few of each rule, in a fixed order."""
    once = {(flag.rule, flag.file, flag.line, flag.step, flag.evidence): flag for flag in flags}
    ordered = sorted(
        once.values(),
        key=lambda flag: (flag.severity, flag.rule, flag.file or "", flag.step or 0, flag.line or 0, flag.evidence),
    )
    kept: list[Flag] = []
    seen: dict[str, int] = {}
    for flag in ordered:
        seen[flag.rule] = seen.get(flag.rule, 0) + 1
        if seen[flag.rule] <= _MOST_OF_A_RULE and len(kept) < _MOST_FLAGS:
            kept.append(flag)
    return kept
