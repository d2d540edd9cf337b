"""Programs that run in the sandboxes of a verdict. They import only the standard library, pytest and each other.

In a sandbox this directory is a top-level package named `in_sandbox`; its files import each other relatively.
"""
