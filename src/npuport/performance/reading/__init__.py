"""Reading what profilers wrote. Every reader gives a ``Profile``; what it could not read is among its problems."""
