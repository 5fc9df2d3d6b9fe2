"""HTTP/1.1 toward clients: strict heads and bodies, replies, slow clients, draining."""
