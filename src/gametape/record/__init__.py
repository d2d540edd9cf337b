"""Trajectories on disk: the append-only journal of a running one, the ATIF file of a finished one."""
