"""Results of matches, the table they make, and the clock they are played on."""
