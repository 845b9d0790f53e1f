"""Components of my own for orbit."""
