"""The rules: one module per family, one class per rule, one Markdown document per rule that is also its test."""
