"""What a client key may use: reserved before, settled after."""
