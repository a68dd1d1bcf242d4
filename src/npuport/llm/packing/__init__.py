"""Training samples of one length from documents and dialogues, with every token accounted for. Needs no torch."""
