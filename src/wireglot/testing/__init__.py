"""For tests of your own: laws, strategies, an upstream that misbehaves to order, a live gateway."""
