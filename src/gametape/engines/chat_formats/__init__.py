"""Chat formats: how conversations are encoded in a model's tokens, and how its turns and tool calls are parsed."""
