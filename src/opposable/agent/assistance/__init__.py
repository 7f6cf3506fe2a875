"""Opt-in help for models that need it: a run policy and a model wrapper, chosen by the model's profile."""
