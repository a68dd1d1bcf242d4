"""Building Apex for Ascend: a script for one machine, and a check of the wheel that comes out."""
