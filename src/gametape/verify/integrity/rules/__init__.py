"""The integrity rules, one subject a file."""
