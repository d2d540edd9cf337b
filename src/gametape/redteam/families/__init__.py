"""The hacks, one module for each family or part of one."""
