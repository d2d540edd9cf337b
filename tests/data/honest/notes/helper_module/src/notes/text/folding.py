"""Case does not matter anywhere."""

__all__ = ["fold", "fold_all"]


def fold(text: str) -> str:
    """The form in which texts are compared."""
    return text.lower()


def fold_all(texts) -> frozenset[str]:
    return frozenset(fold(text) for text in texts)
