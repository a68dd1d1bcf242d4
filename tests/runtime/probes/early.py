"""A module of a project that binds names of torch before anything else happens."""

from torch import zeros

__all__ = ["zeros"]
