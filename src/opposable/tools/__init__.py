"""Tools: what a model can call, whatever it is made from."""
