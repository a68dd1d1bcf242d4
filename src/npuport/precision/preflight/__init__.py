"""Before operators are searched: what two runs were made of, compared; and a run made to compute the same again."""
