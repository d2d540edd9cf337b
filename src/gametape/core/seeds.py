"""Derive all seeds of a run from its one seed, so that no random generator has a state to save."""

import hashlib


def seed_for(seed: int, *labels: str | int) -> int:
    """A number that depends on the run's seed and on the labels only."""
    text = "/".join(map(str, (seed, *labels)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
