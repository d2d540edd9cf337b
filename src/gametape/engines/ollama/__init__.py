"""Models behind a server that speaks Ollama's own protocol."""

from gametape.engines.ollama.model import OllamaModel, open_ollama_model

__all__ = ["OllamaModel", "open_ollama_model"]
