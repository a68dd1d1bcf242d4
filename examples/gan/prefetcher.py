"""Copy the next batch to the GPU on a side stream while the current one is being used."""

import torch


class CUDAPrefetcher:
    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        self.batches = iter(self.loader)
        self.preload()
        while self.next_batch is not None:
            # the copy must have arrived before the default stream reads it ...
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.next_batch
            # ... and its memory must not be reused while the default stream still works on it
            batch.record_stream(torch.cuda.current_stream())
            self.preload()
            yield batch

    def preload(self):
        batch = next(self.batches, None)
        if batch is None:
            self.next_batch = None
            return
        with torch.cuda.stream(self.stream):
            self.next_batch = batch.cuda(non_blocking=True)
