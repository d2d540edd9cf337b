"""What the type checker, the linter and the syntax trees need around them to be safe to use on hostile sources."""
