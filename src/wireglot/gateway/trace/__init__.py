"""What passes through the gateway, to be looked at: rows of all exchanges, bodies where they are recorded."""
