"""What agents thought worth remembering: markdown in a git repository of its own, which a person reads as a diff."""
