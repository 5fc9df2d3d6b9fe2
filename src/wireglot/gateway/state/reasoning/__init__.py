"""The reasoning of old turns, kept for clients that do not send it back."""
