"""First contact with real vendors: the same requests to a vendor and to the scripted upstream, compared."""
