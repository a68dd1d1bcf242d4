"""Large language models: their training data."""
