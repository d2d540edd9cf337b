"""Hints, tasks, run configurations and messages: small closed types that survive JSON and pickle."""

import json
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from gametape.core.config import RunConfig
from gametape.core.hint import Hint
from gametape.core.messages import CommandResult, GenerateRequest, Generation, ToolResult, WeightUpdate
from gametape.core.task import Task, TaskTests
from gametape.core.validation import problems_from

HINT: dict[str, Any] = {
    "trajectory_id": "t",
    "step": 3,
    "span": [0, 5],
    "source": "tool_error",
    "type": "unknown-tool",
    "text": "Only call tools from the list.",
    "hint_ids": [1, 2],
    "gates": {"g0": {"passed": True, "value": 1.5}},
    "used": True,
    "kl": 0.25,
    "versions": {"policy": 4, "teacher": 0},
}
TASK: dict[str, Any] = {
    "name": "restore-parser",
    "mode": "shared",
    "instruction": "Write the parser.",
    "source_paths": ["src/parser.py"],
    "tests": {"fail_to_pass": ["a", "b"], "pass_to_pass": ["c"], "held_out": ["d"], "groups": {"integration": ["c"]}},
}
CONFIG: dict[str, Any] = {"arm": "rlvr_ttf", "model": "smollm2", "tasks": "worlds:small"}
GENERATION: dict[str, Any] = {
    "request_id": "r",
    "completion_ids": [1],
    "logprobs": [-1.0],
    "policy_versions": [2],
    "finish": "stop",
}
ALL = [
    (Hint, HINT),
    (Task, TASK),
    (RunConfig, CONFIG),
    (Generation, GENERATION),
    (GenerateRequest, {"request_id": "r", "prompt_ids": [1], "max_tokens": 8}),
    (WeightUpdate, {"policy_version": 3, "location": "checkpoints/3"}),
    (CommandResult, {"exit_code": 0, "stdout": "", "stderr": ""}),
    (ToolResult, {"content": "ok"}),
]


@pytest.mark.parametrize(("kind", "document"), ALL, ids=[kind.__name__ for kind, _ in ALL])
def test_it_survives_json_and_pickle(kind: type[BaseModel], document: dict[str, Any]) -> None:
    value = kind.model_validate(document)
    assert kind.model_validate(json.loads(json.dumps(value.model_dump()))) == value
    assert pickle.loads(pickle.dumps(value)) == value


FAULTS = [
    (Hint, HINT, {"schema_version": "hint-v0"}, "schema_version", "'hint-v1'"),
    (Hint, HINT, {"span": [5, 5]}, "span", "a larger end"),
    (Hint, HINT, {"span": [0, "5"]}, "span[1]", "integer"),
    (Hint, HINT, {"text": "two\nlines"}, "text", "one line"),
    (Hint, HINT, {"text": " "}, "text", "one line"),
    (Hint, HINT, {"kl": -0.1}, "kl", "greater than or equal to 0"),
    (Hint, HINT, {"gates": {"g3": None}}, "gates.g3", "no such field"),
    (Task, TASK, {"schema_version": "task-v9"}, "schema_version", "'task-v1'"),
    (Task, TASK, {"mode": "open"}, "mode", "'split'"),
    (Task, TASK, {"source_paths": ["/etc/passwd"]}, "source_paths[0]", "inside the workspace"),
    (Task, TASK, {"source_paths": ["a", "b/../../c"]}, "source_paths[1]", "inside the workspace"),
    (Task, TASK, {"tests": {"fail_to_pass": ["a"], "pass_to_pass": ["a"]}}, "tests.pass_to_pass", "no test"),
    (Task, TASK, {"tests": {"fail_to_pass": ["a", "a"], "pass_to_pass": []}}, "tests.fail_to_pass", "once"),
    (
        Task,
        TASK,
        {"tests": {"fail_to_pass": ["a"], "pass_to_pass": [], "held_out": ["a"]}},
        "tests.held_out",
        "no test",
    ),
    (
        Task,
        TASK,
        {"tests": {"fail_to_pass": ["a"], "pass_to_pass": [], "groups": {"unit": ["x"]}}},
        "tests.groups.unit",
        "x is not",
    ),
    (Task, TASK, {"source_paths": []}, "source_paths", "at least one"),
    (Task, TASK, {"import_roots": [".."]}, "import_roots[0]", "inside the workspace"),
    (Task, TASK, {"mode": "split"}, "split", "in split mode"),
    (
        Task,
        TASK,
        {"stages": [{"name": "s", "instruction": "", "tests": {"fail_to_pass": ["z"], "pass_to_pass": []}}]},
        "stages[0].tests",
        "z is not",
    ),
    (Task, TASK, {"limits": {"memory_mb": 0}}, "limits.memory_mb", "greater than 0"),
    (RunConfig, CONFIG, {"schema_version": "run-v2"}, "schema_version", "'run-v1'"),
    (RunConfig, CONFIG, {"arm": "ppo"}, "arm", "'rlvr_ttf_gated'"),
    (RunConfig, CONFIG, {"ttf": {"beta": 1.5}}, "ttf.beta", "less than or equal to 1"),
    (RunConfig, CONFIG, {"rl": {"group": 8}}, "rl.group", "no such field"),
    (Generation, GENERATION, {"logprobs": []}, "logprobs", "1 entries"),
    (Generation, GENERATION, {"policy_versions": [-1]}, "policy_versions[0]", "greater than or equal to 0"),
]


@pytest.mark.parametrize(("kind", "document", "change", "path", "expected"), FAULTS)
def test_what_is_wrong_is_refused_by_its_place(
    kind: type[BaseModel], document: dict[str, Any], change: dict[str, Any], path: str, expected: str
) -> None:
    kind.model_validate(document)
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(document | change)
    assert expected in dict(problems_from(caught.value, document | change))[path]


def test_the_agent_sees_every_test_that_is_not_held_out() -> None:
    tests = TaskTests(fail_to_pass=["a"], pass_to_pass=["c"], held_out=["b"], groups={"integration": ["b"]})
    assert tests.visible == ["a", "c"]
    assert [tests.group_of(test) for test in tests.every] == ["unit", "unit", "integration"]
