"""`wireglot doctor`: looks at everything a gateway depends on, and says how to mend what is wrong."""
