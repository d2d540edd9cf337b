"""Sources of hint candidates: one file for each kind of evidence."""
