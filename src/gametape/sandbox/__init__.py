"""Run code that is assumed to be hostile: backends, policy, limits, events.

    from gametape.sandbox.backend import SandboxSpec, open_backend

    result = open_backend().start(SandboxSpec(workspace=path)).exec(["python3", "main.py"])

This module imports nothing: the keeper, which must start in milliseconds, is in the same package.
"""
