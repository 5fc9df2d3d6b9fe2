"""Records exchanges for the inspector: a row for each, bodies where recording is on."""
