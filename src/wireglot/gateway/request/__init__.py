"""What was asked, read once; and what is still open of it."""
