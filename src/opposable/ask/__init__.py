"""Ask your data: questions in words, answered from a database."""
