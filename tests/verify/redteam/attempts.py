"""All attempts."""

from tests.verify.redteam.attempt import Attempt, plant, subject_of
from tests.verify.redteam.forging import FORGING
from tests.verify.redteam.hiding import HIDING
from tests.verify.redteam.words import WORDS

ATTEMPTS: list[Attempt] = [*FORGING, *WORDS, *HIDING]
__all__ = ["ATTEMPTS", "plant", "subject_of"]
