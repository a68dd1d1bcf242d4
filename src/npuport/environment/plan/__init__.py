"""Which versions go together: from a wish to exact versions and an install script, and what of a list clashes."""
