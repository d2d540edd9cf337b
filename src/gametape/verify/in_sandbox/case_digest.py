"""The neutral id of a parametrised case: a keyed digest of the id that pytest gives it."""

import hashlib


def neutral_case_id(key: bytes, case_id: str) -> str:
    return hashlib.blake2b(case_id.encode("utf-8", "surrogatepass"), key=key, digest_size=8).hexdigest()
