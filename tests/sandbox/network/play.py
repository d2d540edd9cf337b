"""Plays one attack on the stage and says what came of it."""

import json

from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.policy import SandboxPolicy
from gametape.sandbox.result import ExecResult
from tests.sandbox.network.attacks import GREETINGS, PRELUDE, Attack
from tests.sandbox.network.stage import MARKER, NetworkStage


def play(attack: Attack, stage: NetworkStage) -> ExecResult:
    stage.forget()
    policy = SandboxPolicy(network_access=stage.access(**dict(attack.access)))
    facts = json.dumps({**stage.ports, "greetings": {name: data.hex() for name, data in GREETINGS.items()}})
    sandbox = open_backend().start(SandboxSpec(policy=policy.with_limits(wall_seconds=600)))
    return sandbox.exec(["python3", "-c", PRELUDE + attack.body, facts])


def escapes(attack: Attack, stage: NetworkStage, result: ExecResult) -> list[str]:
    """What got out, or in, that must not have."""
    found = []
    if stage.forbidden.received:
        found.append(f"the forbidden server was reached: {stage.forbidden.received}")
    if MARKER in result.stdout + result.stderr:
        found.append("the forbidden server's answer came in")
    hosts = [value for seen in stage.seen for key, value in seen["headers"] if key.lower() == "host"]
    good = {f"allowed.test:{stage.ports['A']}", f"a.wild.test:{stage.ports['A']}"}
    found += [f"the allowed server was asked for {host}" for host in hosts if host not in good]
    found += [f"a smuggled request: {seen}" for seen in stage.seen if "smuggled" in seen["path"]]
    found += [f"looked up {name}" for name in stage.looked_up if "s3cr3t" in name]
    passed = [request for request in result.network if request.allowed and request.path != "/redirect"]
    if attack.reason:
        found += [f"let through: {request}" for request in passed if request.reason != attack.reason]
    return found


def complaints(attack: Attack, stage: NetworkStage, result: ExecResult) -> list[str]:
    """What is wrong with how an attack ended: nothing may get through, and the record must say why."""
    found = escapes(attack, stage, result)
    reasons = [request.reason for request in result.network if request.reason]
    if attack.reason is None and result.network:
        found.append(f"the proxy was asked: {result.network}")
    if attack.reason is not None and reasons != [attack.reason]:
        found.append(f"recorded {reasons}, expected {attack.reason!r}; {result.stdout[-300:]} {result.stderr[-300:]}")
    return found
