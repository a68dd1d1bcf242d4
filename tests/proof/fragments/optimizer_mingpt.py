# Form: AdamW over two groups of parameters. Origin: minGPT, mingpt/model.py (configure_optimizers).
import torch


def configure_optimizers(model, train_config):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    no_decay = [p for p in model.parameters() if p.dim() < 2]
    model.to("npu")
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=train_config.learning_rate, betas=train_config.betas)
