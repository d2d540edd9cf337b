"""Mine tasks from a repository with tests: delete what some of them need, and ask for it back."""
