"""The team that answers a question: planner, parser, generator, evaluator."""
