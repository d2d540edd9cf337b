"""Importing this module registers every rule."""

from gametape.verify.integrity.rules import (  # noqa: F401
    agent_commands,
    answer_search,
    canned_answers,
    edited_tests,
    equality_overrides,
    forged_reports,
    hard_coded_answers,
    harness_detection,
    leaked_answers,
    monkey_patches,
    network,
    persistence,
    planted_files,
    process_exits,
    process_introspection,
    resource_abuse,
    runner_config,
    runtime_events,
    unreadable_code,
)
