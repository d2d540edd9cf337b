"""The integrity rules, one topic a file."""
