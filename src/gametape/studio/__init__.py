"""What people look at: the page over runs and the desk, static reports, and the pictures in them."""
