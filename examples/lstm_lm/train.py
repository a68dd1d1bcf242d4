"""Word-level language model with an LSTM or a GRU, trained by truncated backpropagation through time.

python train.py
python train.py --model GRU --no-cuda
"""

import argparse
import json
import math
import time

import torch
import torch.nn as nn
from corpus import Corpus
from model import RNNModel

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--model", default="LSTM", choices=["LSTM", "GRU"], help="type of recurrent net")
parser.add_argument("--emsize", type=int, default=64, help="size of word embeddings")
parser.add_argument("--nhid", type=int, default=128, help="hidden units per layer")
parser.add_argument("--nlayers", type=int, default=2)
parser.add_argument("--lr", type=float, default=10.0, help="initial learning rate of plain SGD")
parser.add_argument("--clip", type=float, default=0.25, help="gradient norm is clipped to this")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--max-steps", type=int, default=0, help="stop after this many steps, 0: never")
parser.add_argument("--batch-size", type=int, default=20)
parser.add_argument("--bptt", type=int, default=35, help="sequence length")
parser.add_argument("--dropout", type=float, default=0.2)
parser.add_argument("--seed", type=int, default=1111)
parser.add_argument("--no-cuda", action="store_true", help="do not use CUDA")
parser.add_argument("--cuda-default-tensor", action="store_true", help="create tensors on the GPU by default")
parser.add_argument("--log-interval", type=int, default=10)
parser.add_argument("--log", default="", help="write one JSON line per step to this file")
parser.add_argument("--save", default="", help="keep the best model in this file")
args = parser.parse_args()
args.cuda = not args.no_cuda and torch.cuda.is_available()

torch.manual_seed(args.seed)
if args.cuda:
    torch.cuda.manual_seed(args.seed)
elif torch.cuda.is_available():
    print("There is a CUDA device, but --no-cuda was given.")

LongTensor = torch.cuda.LongTensor if args.cuda else torch.LongTensor
FloatTensor = torch.cuda.FloatTensor if args.cuda else torch.FloatTensor

corpus = Corpus(seed=args.seed)
if args.cuda_default_tensor:
    torch.set_default_tensor_type("torch.cuda.FloatTensor" if args.cuda else "torch.FloatTensor")


def batchify(data, bsz):
    """Cut the stream into bsz columns, (words, bsz)."""
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()
    if args.cuda:
        data = data.cuda()
    return data


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].reshape(-1)


def repackage_hidden(h):
    """Detach the hidden state from the history of the last batch."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


train_data = batchify(corpus.train, args.batch_size)
val_data = batchify(corpus.valid, 10)

model = RNNModel(args.model, corpus.ntokens, args.emsize, args.nhid, args.nlayers, args.dropout)
criterion = nn.CrossEntropyLoss()
if args.cuda:
    model.cuda()
    criterion.cuda()

torch.manual_seed(args.seed)  # the dropout masks start from here, whatever the initialisation has drawn


def evaluate(source):
    """Mean loss per word."""
    model.eval()
    total = FloatTensor([0.0])
    words = 0
    hidden = model.init_hidden(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            data, targets = get_batch(source, i)
            logits, hidden = model(data, hidden)
            total += targets.numel() * criterion(logits, targets)
            words += targets.numel()
    return total.item() / words


def most_likely(words):
    """The model's greedy continuation of word 0."""
    model.eval()
    word = LongTensor([[0]])
    hidden = model.init_hidden(1)
    ids = [0]
    with torch.no_grad():
        for _ in range(words):
            logits, hidden = model(word, hidden)
            word = logits.argmax(dim=-1).view(1, 1)
            ids.append(word.item())
    return ids


def train_epoch(epoch, step, lr, log):
    model.train()
    recent = []
    tic = time.time()
    hidden = model.init_hidden(args.batch_size)
    for i in range(0, train_data.size(0) - 1, args.bptt):
        data, targets = get_batch(train_data, i)
        hidden = repackage_hidden(hidden)
        model.zero_grad()
        logits, hidden = model(data, hidden)
        loss = criterion(logits, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(p.grad, alpha=-lr)

        loss = loss.item()
        if log:
            log.write(json.dumps({"step": step, "loss": loss}) + "\n")
        recent.append(loss)
        step += 1
        if step % args.log_interval == 0:
            mean = sum(recent) / len(recent)
            ms = 1000 * (time.time() - tic) / len(recent)
            print(
                f"| epoch {epoch} | step {step:4d} | {ms:6.1f} ms/step | loss {mean:5.3f} | ppl {math.exp(mean):7.2f}"
            )
            recent, tic = [], time.time()
        if args.max_steps and step >= args.max_steps:
            break
    return step


lr, step, best = args.lr, 0, None
log = open(args.log, "w") if args.log else None
for epoch in range(1, args.epochs + 1):
    step = train_epoch(epoch, step, lr, log)
    val_loss = evaluate(val_data)
    print(f"| end of epoch {epoch} | valid loss {val_loss:5.3f} | valid ppl {math.exp(val_loss):7.2f}", flush=True)
    if best is None or val_loss < best:
        best = val_loss
        if args.save:
            torch.save(model.state_dict(), args.save)
    else:
        lr /= 4.0
    if args.max_steps and step >= args.max_steps:
        break
if log:
    log.close()

if args.save:
    model.load_state_dict(torch.load(args.save, map_location=lambda storage, loc: storage))
    model.rnn.flatten_parameters()
    print(f"best model: valid ppl {math.exp(evaluate(val_data)):.2f}")
print("continuation of word 0:", *most_likely(12))
