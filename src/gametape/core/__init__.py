"""The words everything else is said in: plain, versioned data. No I/O, no heavy imports."""
