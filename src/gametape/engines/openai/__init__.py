"""Models behind an OpenAI-compatible server, used in token ids where the server supports that, else in messages."""

from gametape.engines.openai.model import ServerModel, open_server_model

__all__ = ["ServerModel", "open_server_model"]
