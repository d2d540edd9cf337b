"""See whoever tries to earn a reward without doing the work, and accuse nobody else."""

from gametape.verify.integrity.registry import find_flags

__all__ = ["find_flags"]
