"""Provider data: the catalog, limits of endpoints and models, and `fit`, which adapts a request to them."""
