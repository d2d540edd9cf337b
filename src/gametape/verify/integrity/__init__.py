"""See whoever tries to earn a reward without doing the work, and accuse nobody else."""

from gametape.verify.integrity.rule import flags

__all__ = ["flags"]
