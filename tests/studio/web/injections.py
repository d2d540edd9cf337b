"""Sixty ways of having a page run, fetch, restyle or compute something, for every text that comes out of a record.

What would run says `ran(NUMBER)`, what would fetch asks a port of this machine that nobody listens on, and templates
would give `COMPUTED`.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gametape.core.atif import Agent
from tests.studio.web.site import step_of

COMPUTED = "1787569"
NOWHERE = "//127.0.0.1:9/x"
_RUN = "ran('#')"

SCRIPTS = [
    "<script>%s</script>",
    "</script><script>%s</script>",
    "<ScRiPt>%s</sCrIpT>",
    "<script src=//127.0.0.1:9/x></script>",
    "<script type=module>%s</script>",
    "<img src=x onerror=\"%s\">",
    "<img src=x onerror=%s //",
    "\"><img src=x onerror=%s>",
    "'><img src=x onerror=%s>",
    "\" onmouseover=%s x=\"",
    "' onfocus=%s autofocus x='",
    "`onload=%s`",
    "<svg onload=%s>",
    "<svg><script>%s</script></svg>",
    "<svg><animate onbegin=%s attributeName=x dur=1s>",
    "<svg><set onbegin=%s attributename=x>",
    "<math><mtext><script>%s</script></mtext></math>",
    "<body onload=%s>",
    "<input autofocus onfocus=%s>",
    "<details open ontoggle=%s>",
    "<video><source onerror=%s></video>",
    "<audio src=x onerror=%s>",
    "<iframe srcdoc=\"<script>parent.%s</script>\"></iframe>",
    "<iframe src=\"javascript:parent.%s\"></iframe>",
    "<object data=\"data:text/html,<script>%s</script>\"></object>",
    "<embed src=\"data:text/html,<script>%s</script>\">",
    "<marquee onstart=%s>x</marquee>",
    "<template><script>%s</script></template>",
    "--><script>%s</script><!--",
    "]]><script>%s</script>",
    "</textarea></title></noscript></style><script>%s</script>",
    "\u2028<script>%s</script>\u2029",
    "\x00<script>%s</script>\x1b[2J",
    "\ud83d<script>%s</script>",
    "&lt;script&gt;%s&lt;/script&gt;",
    "&#60;script&#62;%s&#60;/script&#62;",
    "\\u003cscript\\u003e%s\\u003c/script\\u003e",
    "<scr<script>ipt>%s</scr</script>ipt>",
    "\"};%s;//",
    "');%s;//",
    "${%s}",
    "\n\ndata: {}\n\nevent: rows\ndata: <script>%s</script>\n\n",
]  # fmt: skip
ADDRESSES = [
    "javascript:%s",
    "JaVaScRiPt:%s//",
    "\tjava\nscript:%s",
    "data:text/html,<script>%s</script>",
    "<a href=\"javascript:%s\" id=main>x</a>",
    "<base href=//127.0.0.1:9/x>",
    "<meta http-equiv=refresh content=\"0;url=javascript:%s\">",
    "<link rel=stylesheet href=//127.0.0.1:9/x>",
    "<form action=//127.0.0.1:9/x><button>approve</button></form>",
]  # fmt: skip
STYLES = [
    "<style>body{display:none}</style>",
    "</style><style>@import url(//127.0.0.1:9/x);</style>",
    "\" style=\"position:fixed;inset:0;background:url(//127.0.0.1:9/x)\" x=\"",
    "<p style=\"background:url(//127.0.0.1:9/x)\">x</p>",
    "red;background:url(//127.0.0.1:9/x)",
]  # fmt: skip
TEMPLATES = ["{{1337*1337}}", "{% print(1337*1337) %}", "#{1337*1337}", "<%= 1337*1337 %>"]

INJECTIONS = [
    text.replace("%s", _RUN.replace("#", str(number)))
    for number, text in enumerate([*SCRIPTS, *ADDRESSES, *STYLES, *TEMPLATES], start=1)
]


def file_name(number: int) -> str:
    """An injection as the name of a file: all but what no name may have, and a number to tell it by."""
    text = re.sub(r"[/\x00\n]", "|", INJECTIONS[number].encode("utf-8", "replace").decode())
    return f"{number:02} {text}"[:120]


def hostile_trajectory(number: int) -> dict[str, Any]:
    """A record with one injection in every text field that there is, of the kind that a run keeps."""
    text = INJECTIONS[number]
    call = {
        "tool_call_id": text,
        "function_name": text,
        "arguments": {text: text, "deep": [text, {text: "a\n" + text}]},
    }
    result = {"source_call_id": text, "content": text, "extra": {"failed": True}}
    stray = {
        "source_call_id": None,
        "content": [{"type": text, "text": text}, {"type": text, "source": {"path": text}}],
    }
    stray["subagent_trajectory_ref"] = [{"trajectory_id": text}]  # type: ignore[assignment]
    ours = {
        "loss_mask": [1, 1, 1],
        "policy_versions": [1, text, 3],
        "events": [{"kind": text, "detail": text}, {"rung": text, "detail": text}],
        "warnings": [text],
        "after_attempt": text,
        "rolled_back_to": text,
        "finish": text,
        "diff": text,
    }
    metrics = {"completion_token_ids": [0, 1, 2], "logprobs": [-0.5, -1.5, -4], "prompt_tokens": 3}
    gates = {name: {"passed": False, "value": 0.5, "detail": text} for name in ("g0", "g1", "g2")}
    hint = dict.fromkeys(("source", "type", "text", "evidence", "author", "refused"), text)
    hint |= {"step": 2, "span": [0, 2], "used": True, "kl": 0.5, "noticed": 3, "gates": gates}  # type: ignore[dict-item]
    hint |= {"student_logprobs": [-1.0, -2.0], "teacher_logprobs": [-2.0, -1.0]}  # type: ignore[dict-item]
    flag = {"rule": text, "severity": text, "file": text, "line": 3, "evidence": text}
    checks = [{"name": text, "score": 0.5, "detail": text}]
    verdict = {"passed": False, "integrity": [flag | {"step": 3}, flag], "checks": checks, "assurance": text}
    steps = [
        {"step_id": 1, "source": "user", "message": text, "timestamp": text},
        step_of(2, message=text, reasoning_content=text, model_name=text, tool_calls=[call], metrics=metrics,
                observation={"results": [result, stray]}, extra={"gametape": ours}),
        step_of(3, message=[{"type": "text", "text": text}], source=text),
    ]  # fmt: skip
    agent = Agent(name=text or "x", version="1").model_dump() | {"version": text, "model_name": text}
    turns = [{"said": text, "calls": [text], "result": text}]
    forks = [{"step": 2, "plain": {"turns": turns}, "hinted": {"passed": True, "turns": turns}}]
    readings = [{"step": 2, "learner": [-0.5, -1.0, -4.1], "entropy": [1.0, 2.0, text]}, {"step": text}]
    ours = {"targets": [hint], "advantage": -1.0, "forks": forks, "readings": readings}
    told = {"task": text, "outcome": text, "reason": text, "reward": 0.5, "verdict": verdict, "gametape": ours}
    return {
        "schema_version": "ATIF-v1.7",
        "trajectory_id": text,
        "agent": agent,
        "steps": steps,
        "subagent_trajectories": [
            {"schema_version": "ATIF-v1.7", "trajectory_id": text, "agent": agent, "steps": steps}
        ],
        "extra": told,
    }


def write_hostile_run(root: Path, numbers: Iterable[int]) -> None:
    """A training run with injections in its settings and its log, and each in a rollout with a sibling."""
    trajectories = root / "trajectories"
    trajectories.mkdir(parents=True)
    texts = [INJECTIONS[number] for number in numbers]
    settings = [f"{json.dumps(f'{at} {_plain(text)}')} = {json.dumps(_plain(text))}\n" for at, text in enumerate(texts)]
    (root / "config.toml").write_text(f"arm = {json.dumps(_plain(texts[0]))}\n{''.join(settings)}")
    lines: list[dict[str, Any]] = [{"kind": "eval", "step": 0, "success": 0.1, "episodes_so_far": 0, "episodes": 8}]
    for text in texts:
        lines += [
            {"kind": "update", "step": 1, "reward": 0.5, "pass_rates": {text: 0.5}, "mismatch": 0.1},
            {
                "kind": "update",
                "step": 2,
                "reward": text,
                "pass_rates": dict.fromkeys(texts, 0.5),
                "time": {text: text},
            },
            {"kind": "alarm", "step": 2, "name": text, "value": text, "limit": 1, "advice": text},
            {"kind": text, "step": text},
        ]
    (root / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = [json.dumps({"text": text, "tool_calls": [text]}) + "\n" for text in texts]
    (root / "behaviour.jsonl").write_text("".join(line * 60 for line in said))
    for number in numbers:
        for sibling in range(2):
            path = trajectories / f"{file_name(number)}.{sibling:03}.json"
            path.write_text(json.dumps(hostile_trajectory(number)))


def _plain(text: str) -> str:
    """As TOML may have it."""
    return re.sub(r"[\x00-\x1f\ud800-\udfff]", "?", text)
