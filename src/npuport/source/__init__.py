"""Reading a tree: files and their encodings, Python modules, scopes, names and constants."""
