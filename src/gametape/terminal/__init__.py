"""Progress on the terminal, on stderr, shared by the verbs and the demo."""
