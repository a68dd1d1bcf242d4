# Look-alike: an optimizer of the project's own with the name of PyTorch's. Origin: Hugging Face's former AdamW.
import torch


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, correct_bias=True):
        super().__init__(params, {"lr": lr, "correct_bias": correct_bias})


def optimizer_of(model):
    return AdamW(model.to("npu").parameters(), lr=1e-4)
