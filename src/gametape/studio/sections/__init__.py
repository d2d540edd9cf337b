"""The sections of a report, one module for each kind of run."""
