"""Integrity rules: they flag a submission that tries to earn a reward without the work, and no honest one."""

from gametape.verify.integrity.registry import find_flags

__all__ = ["find_flags"]
