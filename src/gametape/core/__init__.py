"""Plain, versioned data types and the protocols at the seams. No I/O, no heavy imports."""
