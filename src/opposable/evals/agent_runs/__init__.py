"""Runs in simulated worlds: scenarios, models that misbehave in fixed ways, and what each part of guarding is worth."""
