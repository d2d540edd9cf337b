"""The one reader of Python source: parsing, definitions, imports, names, constants, expected calls and pytest ids.

Nothing here runs the code that it reads.
"""
