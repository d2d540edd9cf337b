"""A store for values by key.

Transactions are planned: see the instruction. Nothing of it is written yet.
"""
