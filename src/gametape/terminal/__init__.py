"""Progress on the terminal, shared by the verbs and the demo. All of it goes to stderr."""
