"""Harbour log: a small synthetic English corpus and its character-level batches."""

import random

import torch

SHIPS = ["the Marigold", "the Plover", "the Grey Heron", "the old Kestrel"]
CARGO = ["salt", "timber", "lamp oil", "dried fish"]
PEOPLE = ["the pilot", "a deck hand", "the cook", "the clerk"]
WEATHER = ["in thick fog", "under a clear sky", "in steady rain", "before dawn"]
ARRIVAL = ["came in", "tied up at the quay", "dropped anchor", "left for the islands"]
DEED = ["counted the crates", "signed the book", "mended a torn sail", "rang the bell"]


def write_corpus(sentences, seed):
    """Return a text of that many sentences; the same seed gives the same text on every machine."""
    rng = random.Random(seed)
    lines = []
    for _ in range(sentences):
        ship, person = rng.choice(SHIPS), rng.choice(PEOPLE)
        if rng.random() < 0.5:
            line = f"{ship} {rng.choice(ARRIVAL)} {rng.choice(WEATHER)} with {rng.choice(CARGO)} below."
        else:
            line = f"{rng.choice(WEATHER)} {person} of {ship} {rng.choice(DEED)}."
        lines.append(line[0].upper() + line[1:])
    return "\n".join(lines) + "\n"


class CharTokenizer:
    def __init__(self, text):
        self.chars = sorted(set(text))
        self.index = {c: i for i, c in enumerate(self.chars)}

    @property
    def vocab_size(self):
        return len(self.chars)

    def encode(self, text):
        return [self.index[c] for c in text]

    def decode(self, ids):
        return "".join(self.chars[i] for i in ids)


class BatchSampler:
    """Random windows of the corpus, (batch, block) inputs and the targets one character later."""

    def __init__(self, ids, batch_size, block_size, device, seed):
        self.ids = torch.tensor(ids, dtype=torch.long)
        self.batch_size = batch_size
        self.block_size = block_size
        self.device = device
        # Its own generator: the batches do not depend on how many numbers dropout has drawn.
        self.generator = torch.Generator().manual_seed(seed)

    def next(self):
        starts = torch.randint(len(self.ids) - self.block_size - 1, (self.batch_size,), generator=self.generator)
        x = torch.stack([self.ids[s : s + self.block_size] for s in starts.tolist()])
        y = torch.stack([self.ids[s + 1 : s + 1 + self.block_size] for s in starts.tolist()])
        if "cuda" in self.device:
            # pinned memory lets the copy run while the GPU still works on the last batch
            x = x.pin_memory().to(self.device, non_blocking=True)
            y = y.pin_memory().to(self.device, non_blocking=True)
        else:
            x, y = x.to(self.device), y.to(self.device)
        return x, y
