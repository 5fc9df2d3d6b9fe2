"""`wireglot translate`: one document, or a whole file of them."""
