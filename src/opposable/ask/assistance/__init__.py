"""Assistance for models whose profile asks for it: the repair of rejected SQL, and the calibrated confidence."""
