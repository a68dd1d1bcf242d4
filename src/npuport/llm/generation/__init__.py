"""How fast a model answers in a chat of several turns, measured on the device that is there."""
