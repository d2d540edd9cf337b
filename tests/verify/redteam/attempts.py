"""All attempts."""

from tests.verify.redteam.attempt import Attempt, plant, subject_of
from tests.verify.redteam.forging import FORGING
from tests.verify.redteam.guessing import GUESSING
from tests.verify.redteam.hiding import HIDING
from tests.verify.redteam.splitting import SPLITTING
from tests.verify.redteam.structure import STRUCTURE
from tests.verify.redteam.words import WORDS

ATTEMPTS: list[Attempt] = [*FORGING, *WORDS, *HIDING, *SPLITTING, *GUESSING, *STRUCTURE]
__all__ = ["ATTEMPTS", "plant", "subject_of"]
