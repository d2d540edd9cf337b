"""Run the rules over finished trajectories: what an agent did with its tools, and the code it wrote with them."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace

from gametape.core.trajectory import Trajectory
from gametape.core.verdict import Flag
from gametape.syntax.resolved_module import resolve_module
from gametape.verify.integrity import all_rules  # noqa: F401 - registers them
from gametape.verify.integrity.agent_actions import AgentAction, actions_of_step
from gametape.verify.integrity.code_view import CodeView, TaskContext, named_like_a_test, with_embedded_code
from gametape.verify.integrity.registry import (
    RULES,
    IntegrityRule,
    RuleFinding,
    limit_flags,
    run_code_rules,
)

_OF_SCRIPTS = re.compile(
    r"^(answer\.(git-store|byte-code|process-secrets)|report\.written-file|runner\.writes-startup|"
    r"persistence\.(started-later|made-byte-code)|special-case\.unchecked)"
)
"""What also counts in a throw-away script: such scripts may read tests, fetch help and exit as they like."""
_NEEDS_THE_TASK = re.compile(r"^(network\.|special-case\.(hard|count)|resources\.kills-others|persistence\.detached)")


def audit_trajectory(trajectory: Trajectory) -> list[Flag]:
    """Every accusation against the agent of a trajectory, subagents included, each with its step."""
    flags = [flag for sub in trajectory.subagent_trajectories or [] for flag in audit_trajectory(sub)]
    created_paths: set[str] = set()
    allowed = bool((trajectory.extra or {}).get("network_hosts"))  # the proxy has checked and recorded each request
    for step in trajectory.steps:
        if step.is_copied_context:
            continue
        for act in actions_of_step(step):
            flags += [
                rule.to_flag(replace(finding, step=step.step_id))
                for rule, finding in _check_action(act, created_paths)
                if not (rule.id == "network.fetched" and allowed)
            ]
            if act.kind == "write" and act.old_text is None:
                created_paths.add(act.path.removeprefix("./").removeprefix("/workspace/"))
    return limit_flags(flags)


def _check_action(act: AgentAction, created_files: set[str]) -> Iterator[tuple[IntegrityRule, RuleFinding]]:
    for rule in RULES.values():
        if rule.input_kind == "trajectory":
            yield from ((rule, finding) for finding in rule.check(act, created_files))
    script = act.kind == "program"
    if script or (act.kind == "write" and act.path.endswith(".py") and not named_like_a_test(act.path)):
        code = resolve_module(act.path or "a script", textwrap.dedent(act.text))
        for rule, finding in run_code_rules(CodeView([*with_embedded_code(code)] if code else [], TaskContext())):
            if _OF_SCRIPTS.match(rule.id) if script else not _NEEDS_THE_TASK.match(rule.id):
                yield rule, finding
