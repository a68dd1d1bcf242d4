"""Which models meet a need on given devices, by arithmetic and by facts that have a source, without torch."""
