"""Cache of decoded bodies: the next turn of a conversation decodes only what is new. Optional."""
