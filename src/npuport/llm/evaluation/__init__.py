"""How good a model's answers are, by lm-eval, and whether two devices give the same."""
