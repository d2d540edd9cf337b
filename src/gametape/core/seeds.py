"""One seed for a run, and from it one for everything: no generator has a state that would have to be saved."""

import hashlib


def seed_for(seed: int, *labels: str | int) -> int:
    """A number that depends on the run's seed and on what it is for, and on nothing else."""
    text = "/".join(map(str, (seed, *labels)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
