"""`wireglot inspect`: the inspector's page in a browser."""
