"""Find out what a code base is: its files, its package, its tests, what it needs."""
