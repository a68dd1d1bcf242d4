"""Reading the machine. Each module answers for one part; none changes anything, none raises for what is missing."""
