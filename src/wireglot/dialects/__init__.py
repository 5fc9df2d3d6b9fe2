"""The dialects: each a package of codecs between its wire form and the IR. They never import one another."""
