"""The optional parts of an installation, and what to type where one is missing."""

_EXTRAS = {
    "train": ("accelerate", "gguf", "llguidance", "safetensors", "torch", "transformers"),
    "semantic": ("numpy",),
    "otel": ("opentelemetry",),
}
"""The packages of each extra in pyproject.toml, by the names they are imported under."""


def what_to_install(package: str) -> str:
    """The command that brings a package: the extra that has it, or the package itself."""
    extra = next((name for name, packages in _EXTRAS.items() if package in packages), None)
    return f"pip install 'gametape[{extra}]'" if extra else f"pip install {package}"
