"""Trajectory documents, by hand and by hypothesis, with fields nobody knows at every level."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from gametape.core.trajectory import ATIF_VERSION

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
NUMBERS = st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | st.integers() | TEXT
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
UNKNOWN_KEYS = st.sampled_from(
    ["", "_keys", "self", "copy", "json", "tokens", "turns", "ours", "model_config", "x y", "é"]
)
UNKNOWN = st.dictionaries(UNKNOWN_KEYS, JSON, max_size=2)
COUNT = st.integers(0, 2**62)
IDS = st.integers(0, 2**31 - 1)


@st.composite
def opened(draw: st.DrawFn, required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    """An object with its required fields, some optional ones (perhaps null), unknown ones, in any order."""
    nullable = {key: st.none() | value for key, value in optional.items()}
    fields = draw(st.fixed_dictionaries(required, optional=nullable)) | draw(UNKNOWN)
    return dict(draw(st.permutations(list(fields.items()))))


PART = opened({"type": st.just("text"), "text": TEXT}, {}) | opened(
    {"type": st.just("image"), "source": opened({"media_type": TEXT.map("image/{}".format), "path": TEXT}, {})}, {}
)
PART |= opened(
    {
        "type": st.just("audio"),
        "source": opened({"media_type": TEXT.map("audio/{}".format), "path": TEXT}, {"duration_sec": NUMBERS}),
    },
    {},
)
CONTENT = TEXT | st.lists(PART, max_size=2)
AGENT = opened(
    {"name": TEXT, "version": TEXT},
    {"model_name": TEXT, "tool_definitions": st.lists(OBJECT, max_size=2), "extra": OBJECT},
)
FINAL = opened({}, {"total_prompt_tokens": COUNT, "total_cost_usd": NUMBERS, "total_steps": COUNT, "extra": OBJECT})


@st.composite
def metrics_and_extra(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(0, 3))
    column = {"min_size": size, "max_size": size}
    metrics = opened(
        {"completion_token_ids": st.lists(IDS, **column)},
        {
            "prompt_tokens": COUNT,
            "cost_usd": NUMBERS,
            "prompt_token_ids": st.lists(IDS, max_size=4),
            "logprobs": st.lists(st.floats(-1e6, 0) | st.integers(-9, 0), **column),
        },
    )
    ours = opened(
        {},
        {
            "loss_mask": st.lists(st.integers(0, 1), **column),
            "policy_versions": st.lists(COUNT, **column),
            "compacted": st.booleans(),
        },
    )
    return {"metrics": draw(metrics), "extra": draw(opened({}, {"gametape": ours}))}


@st.composite
def observation(draw: st.DrawFn, calls: list[str], embedded: list[str]) -> dict[str, Any]:
    by_path = opened({"trajectory_path": TEXT}, {"trajectory_id": TEXT, "session_id": TEXT, "extra": OBJECT})
    by_id = [opened({"trajectory_id": st.sampled_from(embedded)}, {"session_id": TEXT})] if embedded else []
    result = opened(
        {},
        {
            "content": CONTENT,
            "extra": OBJECT,
            "subagent_trajectory_ref": st.lists(st.one_of(by_path, *by_id), max_size=2),
        }
        | ({"source_call_id": st.sampled_from(calls)} if calls else {}),
    )
    return draw(opened({"results": st.lists(result, max_size=2)}, {}))


@st.composite
def steps(draw: st.DrawFn, number: int, embedded: list[str]) -> dict[str, Any]:
    calls = [f"c{index}" for index in range(draw(st.integers(0, 2)))]
    required: dict[str, Any] = {"step_id": st.just(number), "message": CONTENT, "source": st.just("agent")}
    optional: dict[str, Any] = {
        "timestamp": st.datetimes().map(str),
        "model_name": TEXT,
        "is_copied_context": st.booleans(),
        "extra": opened({}, {}),
    }
    if draw(st.booleans()):
        tool_calls = [
            draw(
                opened(
                    {"tool_call_id": st.just(call), "function_name": TEXT, "arguments": OBJECT},
                    {"extra": OBJECT},
                )
            )
            for call in calls
        ]
        required |= {"tool_calls": st.just(tool_calls), "observation": observation(calls, embedded)}
        optional |= {
            "reasoning_content": TEXT,
            "reasoning_effort": TEXT | NUMBERS,
            "llm_call_count": st.integers(1, 9),
        }
        if draw(st.booleans()):
            required |= {key: st.just(value) for key, value in draw(metrics_and_extra()).items()}
            optional.pop("extra")
    else:
        required |= {"source": st.sampled_from(["system", "user"])}
        optional |= {"observation": observation([], embedded)}
    return draw(opened(required, optional))


@st.composite
def trajectories(draw: st.DrawFn, depth: int = 1, **fixed: str) -> dict[str, Any]:
    """A valid ATIF 1.8 document."""
    embedded = [f"sub{index}" for index in range(draw(st.integers(0, 2)))] if depth else []
    subagents = [draw(trajectories(depth - 1, trajectory_id=name)) for name in embedded]
    required = {
        "schema_version": st.just(ATIF_VERSION),
        "agent": AGENT,
        "steps": st.tuples(*(steps(n + 1, embedded) for n in range(draw(st.integers(1, 3))))).map(list),
    }
    required |= {key: st.just(value) for key, value in fixed.items()}
    required |= {"subagent_trajectories": st.just(subagents)} if subagents else {}
    optional = {
        "session_id": TEXT,
        "trajectory_id": TEXT,
        "notes": TEXT,
        "final_metrics": FINAL,
        "extra": OBJECT,
    }
    return draw(opened(required, {key: value for key, value in optional.items() if key not in required}))


SMALL: dict[str, Any] = {
    "schema_version": ATIF_VERSION,
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "go"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "gone",
            "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {}}],
            "observation": {"results": [{"source_call_id": "c", "content": "ok"}]},
            "metrics": {"prompt_token_ids": [1, 2], "completion_token_ids": [3, 4], "logprobs": [-0.5, -1.0]},
            "extra": {"gametape": {"loss_mask": [1, 1], "policy_versions": [0, 0]}},
        },
    ],
}


def small() -> dict[str, Any]:
    """A small valid document of one's own to change."""
    return copy.deepcopy(SMALL)


def turn(number: int, prompt: list[int] | None, completion: list[int] | None, **ours: Any) -> dict[str, Any]:
    """An agent's step with these token ids."""
    metrics = {"prompt_token_ids": prompt, "completion_token_ids": completion}
    step: dict[str, Any] = {"step_id": number, "source": "agent", "message": "", "metrics": metrics}
    return step | ({"extra": {"gametape": ours}} if ours else {})


def replaced(document: Any, places: list[Any], value: Any) -> Any:
    """The document with one place changed."""
    here = document
    for place in places[:-1]:
        here = here[place]
    here[places[-1]] = value
    return document


def every_place(document: Any) -> list[list[Any]]:
    """The way to every value inside a document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, value in items if isinstance(document, dict | list) else []:
        found.append([key])
        found += [[key, *rest] for rest in every_place(value)] if isinstance(value, dict | list) else []
    return found


def text(document: Any) -> str:
    """Two documents are the same when this is: order of keys, nulls, and int or float included."""
    return json.dumps(document)
