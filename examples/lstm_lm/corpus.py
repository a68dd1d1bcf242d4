"""A synthetic word stream of low entropy: the next word depends on the last one and on the parity of the one before."""

import torch


class Corpus:
    """Word ids for training and validation. Drawn on the CPU from its own seeded generator."""

    def __init__(self, ntokens=120, train_words=42000, valid_words=4000, seed=1):
        self.ntokens = ntokens
        generator = torch.Generator().manual_seed(seed)
        # after the word pair (a, b) one of three words follows; the first is the most likely
        skewed = torch.rand(ntokens, 2, 3, generator=generator, device="cpu") ** 3  # few words are frequent
        successors = (skewed * ntokens).long().tolist()
        weights = torch.tensor([0.7, 0.2, 0.1], device="cpu")
        length = train_words + valid_words
        choices = torch.multinomial(weights, length, replacement=True, generator=generator).tolist()

        words = [0, 1]
        for choice in choices[2:]:
            words.append(successors[words[-1]][words[-2] % 2][choice])
        self.train = torch.tensor(words[:train_words], dtype=torch.int64, device="cpu")
        self.valid = torch.tensor(words[train_words:], dtype=torch.int64, device="cpu")
