"""Who is out there, as data: the catalog, the limits of endpoints and models, and the one `fit`."""
