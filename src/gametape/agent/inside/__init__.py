"""Scripts that tools send into the sandbox: the standard library, nothing of the package, one file each."""
