"""All attempts."""

from tests.verify.redteam.attempt import Attempt, plant, subject_of
from tests.verify.redteam.forging import FORGING

ATTEMPTS: list[Attempt] = [*FORGING]
__all__ = ["ATTEMPTS", "plant", "subject_of"]
