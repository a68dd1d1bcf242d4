"""Tiny models made from configs, trained with transformers, peft and trl on the device that these find themselves."""

from __future__ import annotations

import argparse
import itertools
import json
import os
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    set_seed,
)
from trl import SFTConfig, SFTTrainer

VOCABULARY, CLASSES = 99, 3
LAYERS: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
ADAPTER = LoraConfig(task_type="CAUSAL_LM", r=4, lora_dropout=0.1, target_modules=["q_proj", "v_proj"])
GLOBAL_BATCH = 8
PROCESSES = int(os.environ.get("WORLD_SIZE", "1"))
STEPS = {
    "max_steps": 4,
    "eval_strategy": "steps",
    "eval_steps": 2,
    "save_steps": 2,
    "logging_steps": 1,
    "learning_rate": 1e-2,
    "per_device_train_batch_size": GLOBAL_BATCH // PROCESSES,
    "disable_tqdm": True,
    "report_to": [],
}


def gpt2() -> PreTrainedModel:
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=4, **ends))


def llama() -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, num_key_value_heads=2, **LAYERS))


def lora() -> Any:
    return get_peft_model(llama(), ADAPTER)


def bert() -> PreTrainedModel:
    return BertForSequenceClassification(BertConfig(vocab_size=VOCABULARY, num_labels=CLASSES, **LAYERS))


def vit() -> PreTrainedModel:
    return ViTForImageClassification(ViTConfig(image_size=16, patch_size=4, num_labels=CLASSES, **LAYERS))


MODELS = {"gpt2": gpt2, "llama": llama, "lora": lora, "bert": bert, "vit": vit}


def examples(name: str) -> list[dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(1, VOCABULARY, (64, 16), generator=generator)
    classes = torch.randint(0, CLASSES, (64,), generator=generator)
    if name == "vit":
        images = torch.randn(64, 3, 16, 16, generator=generator)
        return [{"pixel_values": image, "labels": label} for image, label in zip(images, classes, strict=True)]
    if name == "bert":
        return [{"input_ids": row, "labels": label} for row, label in zip(tokens, classes, strict=True)]
    return [{"input_ids": row, "labels": row} for row in tokens]


def model_trainer(name: str, output: str, settings: dict[str, Any]) -> Trainer:
    arguments = TrainingArguments(output_dir=output, **STEPS, **settings)
    data = examples(name)
    return Trainer(model=MODELS[name](), args=arguments, train_dataset=data, eval_dataset=data[:16])


def sft_trainer(output: str, settings: dict[str, Any]) -> Trainer:
    words = [("cat", "dog"), ("sat", "ran"), ("on", "under"), ("mat", "tree")]
    texts = [f"the {animal} {did} {where} the {place}" for animal, did, where, place in itertools.product(*words)]
    data = Dataset.from_list([{"text": text} for text in texts * 2])
    tokens = ["<pad>", "<end>", "<unknown>", "the", *itertools.chain(*words)]
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return SFTTrainer(
        model=llama(),
        args=SFTConfig(output_dir=output, bf16=False, max_length=16, **STEPS, **settings),
        train_dataset=data,
        eval_dataset=data,
        processing_class=PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>"),
        peft_config=ADAPTER,
    )


def train(name: str, output: str, settings: dict[str, Any]) -> dict[str, Any]:
    set_seed(0)
    trainer = sft_trainer(output, settings) if name == "sft" else model_trainer(name, output, settings)
    trainer.train()
    # The loss of a step is logged with four digits only; the others have them all.
    kept = ("loss", "grad_norm", "eval_loss")
    numbers = [entry[key] for entry in trainer.state.log_history for key in kept if key in entry]
    trainer.train(resume_from_checkpoint=f"{output}/checkpoint-2")
    resumed = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
    device, processes = trainer.args.device.type, trainer.args.world_size
    return {"device": device, "processes": processes, "numbers": numbers, "resumed": resumed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("models", nargs="+", choices=[*MODELS, "sft"])
    parser.add_argument("--use_cpu", action="store_true")
    given = parser.parse_args()
    results = {name: train(name, str(given.output / name), {"use_cpu": given.use_cpu}) for name in given.models}
    if os.environ.get("RANK", "0") == "0":
        print("RESULTS", json.dumps(results), flush=True)
