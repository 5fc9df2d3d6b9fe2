"""`wireglot trace`: recorded exchanges listed, shown, compared, exported, replayed."""
