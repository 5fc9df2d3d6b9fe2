"""`wireglot doctor`: looks at everything a gateway depends on, and says how to repair what is wrong."""
