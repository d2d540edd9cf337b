"""What runs inside the sandboxes of a verdict: the standard library and pytest, nothing of the package.

Inside, the directory is a package of its own named `inside`; its files import each other relatively.
"""
