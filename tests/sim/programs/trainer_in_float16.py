"""Three steps of transformers' Trainer in float16, with the optimizers named; each tells how it ended."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

CONFIG = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}


def train(folder: str, optim: str) -> str:
    model = LlamaForCausalLM(LlamaConfig(**CONFIG, num_attention_heads=2, num_key_value_heads=2))
    tokens = {"input_ids": torch.arange(8), "labels": torch.arange(8)}
    chosen = {"optim": optim} if optim != "default" else {}
    arguments = TrainingArguments(folder, fp16=True, max_steps=3, save_strategy="no", report_to=[], **chosen)
    try:
        Trainer(model=model, args=arguments, train_dataset=[tokens] * 8).train()
    except TypeError as error:
        return str(error)
    return "trained"


for name in sys.argv[2:]:
    print(f"{name}: {train(sys.argv[1], name)}")
