"""Cache of decoded bodies: what a conversation came to is found again with its next turn. Optional."""
