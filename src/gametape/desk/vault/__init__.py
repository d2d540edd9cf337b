"""The vault: agents' notes as markdown files in a git repository, which a person reviews as diffs."""
