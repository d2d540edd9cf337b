"""Writers of hints: from a located fault to the one line that is said about it. One file for each kind of author."""
