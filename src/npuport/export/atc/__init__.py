"""The ATC command, which compiles a model into an .om: built, and checked against what CANN documents."""
