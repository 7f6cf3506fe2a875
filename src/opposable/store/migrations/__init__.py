"""How the schema came to be, step by step; run when a store is opened."""
