"""Large language models: their training data, and how their training is divided over devices."""
