"""How models are written to and read: a plain fenced form that any model can learn, and models' own tool formats."""
