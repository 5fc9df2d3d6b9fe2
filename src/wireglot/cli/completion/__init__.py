"""`wireglot completion`: what a shell needs to complete the command line."""
