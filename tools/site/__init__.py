"""`make site`: the pages of docs/ as a static site, with navigation and search."""
