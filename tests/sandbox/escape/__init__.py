"""Attempts to get out of the sandbox, by family. See `probe.py` for what one is."""

from tests.sandbox.escape import (
    exhaustion,
    files,
    links,
    mounts,
    network,
    outside,
    power,
    proc,
    processes,
    resources,
    surfaces,
)

_MODULES = (files, proc, network, mounts, processes, surfaces, power, outside, links, resources, exhaustion)
PROBES = [probe for module in _MODULES for probe in module.PROBES]
