"""What could not cross of each request, for whoever asks within the hour."""
