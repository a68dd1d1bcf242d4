"""Profiles in forms that other tools read: Parquet tables, and a trace that Perfetto nests rightly."""
