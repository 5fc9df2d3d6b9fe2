"""Usage on the local disk, before the store has it."""
