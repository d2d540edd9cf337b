"""Mine tasks from a project with tests: delete code that some tests need, and ask for it back."""
