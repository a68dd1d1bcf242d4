"""What published trainings of language models used, and how far another is from it. Nothing here needs torch."""
