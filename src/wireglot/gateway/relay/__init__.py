"""One request to one provider after the other, until one answers."""
