"""Names for web addresses."""

import logging
import re
import sys
import time
import unicodedata

log = logging.getLogger(__name__)


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def _timed(function):
    def wrapper(*args, **kwargs):
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            caller = sys._getframe(1).f_code.co_name
            log.debug("%s for %s took %.6f s", function.__name__, caller, time.perf_counter() - started)

    wrapper.__name__ = function.__name__
    wrapper.__doc__ = function.__doc__
    return wrapper


@_timed
def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if max_length is not None and max_length < 1:
        raise ValueError("max_length must be positive")
    ascii_only = unicodedata.normalize("NFKD", re.sub(r"['’]", "", title.replace("&", " and ")))
    parts = re.findall(r"[a-z0-9]+", ascii_only.encode("ascii", "ignore").decode().lower())
    if not parts:
        raise ValueError("nothing left")
    return _fit(parts, max_length)


def _fit(parts: list[str], limit: int | None) -> str:
    slug = "-".join(parts)
    if limit is None or len(slug) <= limit:
        return slug
    if len(parts) == 1:
        return slug[:limit]
    return _fit(parts[:-1], limit)
