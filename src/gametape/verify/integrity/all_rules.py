"""Importing this module registers every rule."""

from gametape.verify.integrity.rules import (  # noqa: F401
    agent_commands,
    answer_search,
    canned_answers,
    edited_tests,
    equality_overrides,
    hard_coded_answers,
    leaked_answers,
    monkey_patches,
    network,
    persistence,
    planted_files,
    process_exits,
    process_introspection,
    runner_config,
    runtime_events,
    unreadable_code,
)
