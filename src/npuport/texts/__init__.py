"""What a text shows of itself without being read: its characters, and the marks of encodings gone wrong."""
