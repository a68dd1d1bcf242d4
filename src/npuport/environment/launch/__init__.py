"""Launchers: a CUDA job's script turned into one for NPUs, a job's scripts made from its description, rank tables.

Texts in, texts out; nothing here starts a job.
"""
