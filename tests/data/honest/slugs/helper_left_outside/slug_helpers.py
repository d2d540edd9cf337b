"""What slugify is made of."""

import re
import unicodedata


def clean(title):
    text = re.sub("['’]", "", title).replace("&", " and ")
    return re.findall("[a-z0-9]+", unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower())


def shorten(parts, limit):
    if not parts or (limit is not None and limit < 1):
        raise ValueError(limit)
    while limit and len(parts) > 1 and len("-".join(parts)) > limit:
        parts = parts[:-1]
    return "-".join(parts)[:limit]
