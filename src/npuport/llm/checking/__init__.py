"""Configurations of trainings and their data, checked before any device is taken. Nothing here needs torch."""
