"""Goals: an agent works until a command says that it is done, and nobody but that command has a say."""
