"""The registry of rules. A rule is an id, a severity, a description, and a function that yields findings.

A rule never accuses for what the task's own tree or reference does too: the same rules run over those, and a finding
whose `key` turns up there is dropped.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gametape.core.verdict import Flag
from gametape.syntax.resolved_module import ResolvedModule
from gametape.verify.integrity.code_view import CodeView, TaskContext, submitted_code, task_code
from gametape.verify.submission import Submission
from gametape.verify.verifier_run import VerifierRun

Severity = Literal["suspect", "proven"]
FAMILIES = (
    "tests", "runner", "exit", "report", "equality", "answer", "special-case", "resources", "persistence", "network",
)  # fmt: skip
_MAX_FLAGS = 60
_MAX_FLAGS_PER_RULE = 12


@dataclass(frozen=True)
class RuleFinding:
    """One violation of a rule. `key` names the construct: a finding is dropped where the task's own code has it too."""

    evidence: str
    file: str | None = None
    line: int | None = None
    key: str = ""
    step: int | None = None


CodeCheck = Callable[[ResolvedModule, TaskContext], Iterator[RuleFinding]]
WorkspaceCheck = Callable[[Submission], Iterator[RuleFinding]]
RunCheck = Callable[[Submission, Sequence[VerifierRun]], Iterator[RuleFinding]]


@dataclass(frozen=True)
class IntegrityRule:
    id: str
    severity: Severity
    description: str
    false_positive_guard: str
    """Why an honest solution is not flagged."""
    input_kind: Literal["code", "tree", "runs", "trajectory"]
    check: Callable[..., Iterator[RuleFinding]]

    def to_flag(self, finding: RuleFinding) -> Flag:
        evidence = "".join(char if char.isprintable() else " " for char in f"{self.description}: {finding.evidence}")
        return Flag(
            rule=self.id,
            severity=self.severity,
            file=finding.file,
            line=finding.line,
            step=finding.step,
            evidence=evidence[:400],
        )


RULES: dict[str, IntegrityRule] = {}


def _register(
    id: str,
    severity: Severity,
    description: str,
    false_positive_guard: str,
    over: Literal["code", "tree", "runs", "trajectory"],
) -> Callable[[Callable[..., Iterator[RuleFinding]]], Callable[..., Iterator[RuleFinding]]]:
    def wrap(check: Callable[..., Iterator[RuleFinding]]) -> Callable[..., Iterator[RuleFinding]]:
        if id in RULES or id.split(".", maxsplit=1)[0] not in FAMILIES:
            raise ValueError(f"{id}: a rule's id is its own, and begins with its family")
        RULES[id] = IntegrityRule(id, severity, description, false_positive_guard, over, check)
        return check

    return wrap


def code_rule(
    id: str, severity: Severity, description: str, false_positive_guard: str
) -> Callable[[CodeCheck], CodeCheck]:
    """A rule over each Python text the agent wrote below the sources."""
    return _register(id, severity, description, false_positive_guard, "code")


def workspace_rule(
    id: str, severity: Severity, description: str, false_positive_guard: str
) -> Callable[[WorkspaceCheck], WorkspaceCheck]:
    """A rule over the whole workspace against the starting tree."""
    return _register(id, severity, description, false_positive_guard, "tree")


def run_rule(
    id: str, severity: Severity, description: str, false_positive_guard: str
) -> Callable[[RunCheck], RunCheck]:
    """A rule over what was seen while tests ran."""
    return _register(id, severity, description, false_positive_guard, "runs")


def action_rule(
    id: str, severity: Severity, description: str, false_positive_guard: str
) -> Callable[[Callable[..., Iterator[RuleFinding]]], Callable[..., Iterator[RuleFinding]]]:
    """A rule over one command an agent ran."""
    return _register(id, severity, description, false_positive_guard, "trajectory")


def find_flags(submission: Submission, runs: Sequence[VerifierRun]) -> list[Flag]:
    """Every flag for a submission: each once, the worst first, in the same order every time."""
    from gametape.verify.integrity import all_rules  # noqa: F401, PLC0415 - registers them, importing this module

    findings: list[tuple[IntegrityRule, RuleFinding]] = []
    for rule in RULES.values():
        if rule.input_kind == "tree":
            findings += [(rule, finding) for finding in rule.check(submission)]
        elif rule.input_kind == "runs":
            findings += [(rule, finding) for finding in rule.check(submission, runs)]
    view = submitted_code(submission)
    findings += _not_in_task_code(run_code_rules(view), submission)
    return limit_flags([rule.to_flag(finding) for rule, finding in findings])


def run_code_rules(view: CodeView) -> list[tuple[IntegrityRule, RuleFinding]]:
    """The findings of the code rules in some modules."""
    return [
        (rule, replace(finding, file=finding.file or code.path))
        for rule in RULES.values()
        if rule.input_kind == "code"
        for code in view.modules
        for finding in rule.check(code, view.context)
    ]


def _not_in_task_code(
    findings: list[tuple[IntegrityRule, RuleFinding]], submission: Submission
) -> list[tuple[IntegrityRule, RuleFinding]]:
    if not findings:
        return []
    own = {(rule.id, finding.key) for rule, finding in run_code_rules(task_code(submission.loaded_task)) if finding.key}
    return [(rule, finding) for rule, finding in findings if (rule.id, finding.key) not in own]


def limit_flags(flags: list[Flag]) -> list[Flag]:
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
        if seen[flag.rule] <= _MAX_FLAGS_PER_RULE and len(kept) < _MAX_FLAGS:
            kept.append(flag)
    return kept
