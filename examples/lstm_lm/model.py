import torch.nn as nn


class RNNModel(nn.Module):
    """Embedding, LSTM or GRU, projection to the vocabulary."""

    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.2):
        super().__init__()
        self.rnn_type = rnn_type
        self.nhid = nhid
        self.nlayers = nlayers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, input, hidden):
        """input (time, batch) word ids -> logits (time * batch, ntoken) and the new hidden state."""
        self.rnn.flatten_parameters()
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        return self.decoder(self.drop(output)).flatten(0, 1), hidden

    def init_hidden(self, batch):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return weight.new_zeros(self.nlayers, batch, self.nhid), weight.new_zeros(self.nlayers, batch, self.nhid)
        return weight.new_zeros(self.nlayers, batch, self.nhid)
