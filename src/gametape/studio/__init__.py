"""What people look at: static reports and the pictures in them, from the files of runs alone."""
