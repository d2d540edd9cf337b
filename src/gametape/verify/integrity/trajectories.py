"""Run the rules over finished trajectories: what an agent did with its tools, and the code it wrote with them."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace

from gametape.core.trajectory import Trajectory
from gametape.core.verdict import Flag
from gametape.verify.integrity import rules  # noqa: F401 - registers them
from gametape.verify.integrity.acts import Act, acts
from gametape.verify.integrity.code import parse
from gametape.verify.integrity.inner import with_inner
from gametape.verify.integrity.rule import RULES, Finding, Rule, bounded, code_findings
from gametape.verify.integrity.view import Setting, View, named_like_a_test

_OF_SCRIPTS = re.compile(
    r"^(answer\.(git-store|byte-code|process-secrets)|report\.written-file|runner\.writes-startup|"
    r"persistence\.(started-later|made-byte-code)|special-case\.unchecked)"
)
"""What also counts in a throw-away script: such scripts may read tests, fetch help and exit as they like."""
_NEEDS_THE_TASK = re.compile(r"^(network\.|special-case\.(hard|count)|resources\.kills-others|persistence\.detached)")


def audit(trajectory: Trajectory) -> list[Flag]:
    """Every accusation against the agent of a trajectory, subagents included, each with its step."""
    found = [flag for sub in trajectory.subagent_trajectories or [] for flag in audit(sub)]
    made: set[str] = set()
    for step in trajectory.steps:
        if step.is_copied_context:
            continue
        for act in acts(step):
            found += [rule.flag(replace(finding, step=step.step_id)) for rule, finding in _judge(act, made)]
            if act.kind == "write" and act.old is None:
                made.add(act.path.removeprefix("./").removeprefix("/workspace/"))
    return bounded(found)


def _judge(act: Act, made: set[str]) -> Iterator[tuple[Rule, Finding]]:
    for rule in RULES.values():
        if rule.over == "trajectory":
            yield from ((rule, finding) for finding in rule.check(act, made))
    script = act.kind == "program"
    if script or (act.kind == "write" and act.path.endswith(".py") and not named_like_a_test(act.path)):
        code = parse(act.path or "a script", textwrap.dedent(act.text))
        for rule, finding in code_findings(View([*with_inner(code)] if code else [], Setting())):
            if _OF_SCRIPTS.match(rule.id) if script else not _NEEDS_THE_TASK.match(rule.id):
                yield rule, finding
