"""Values of a conversation, its outcome and its stream. Knows no wire format."""
