"""`wireglot demo`: a gateway answers a real request in every dialect."""
