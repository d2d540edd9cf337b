"""What the workflow engine has to say: into a file of bounded size, never to the terminal."""

import logging
import logging.handlers
from pathlib import Path

_BYTES = 1 << 20


class _Log(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A line for which there is no room is dropped; it would go to the terminal."""


def log_to(path: Path) -> None:
    """From now on, for the life of this process; only the first file counts."""
    logger = quiet()
    if not any(isinstance(handler, _Log) for handler in logger.handlers):
        handler = _Log(path, maxBytes=_BYTES, backupCount=1)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)


def quiet() -> logging.Logger:
    """Its logger, which says nothing to anybody else."""
    logger = logging.getLogger("dbos")
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger
