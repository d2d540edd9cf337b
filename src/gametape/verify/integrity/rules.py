"""All rules, by importing them."""

from gametape.verify.integrity import (  # noqa: F401
    answers,
    commands,
    comparison,
    configuration,
    events,
    exits,
    hidden,
    hunting,
    literals,
    network,
    outputs,
    patches,
    persistence,
    planted,
    refused,
    reports,
    sealed,
    suite,
    waiting,
)
