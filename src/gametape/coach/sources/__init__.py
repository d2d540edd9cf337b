"""What shows that a turn went wrong: one file for each kind of evidence."""
