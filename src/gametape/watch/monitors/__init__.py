"""One file for each kind of monitor."""
