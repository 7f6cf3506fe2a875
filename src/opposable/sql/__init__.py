"""Reading databases safely: schema, guard, names, repair, execution."""
