"""Texts that a given language model finds unlikely."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from npuport.errors import UserError, first_line
from npuport.llm.cleaning import settings
from npuport.llm.cleaning.judges import Judge
from npuport.llm.cleaning.verdicts import Objection


@cache
def model_of(folder: str) -> tuple[Any, Any]:
    """The tokenizer and the model of a folder, on this machine alone.

    Raises:
        UserError: it cannot be loaded.
    """
    try:
        import transformers
    except ImportError as error:
        raise UserError("steps.perplexity takes the packages torch and transformers: install them.") from error
    try:
        library: Any = transformers
        tokenizer = library.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = library.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = first_line(error)
        raise UserError(
            "steps.perplexity.model: {path} cannot be loaded: {reason}", path=folder, reason=reason
        ) from error
    return tokenizer, model.eval()


def unlikely(step: settings.Perplexity) -> Judge:
    """More perplexity than ``max``; texts of a single token have none."""

    def judge(text: str) -> Objection | None:
        import torch

        tokenizer, model = model_of(step.model)
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=step.tokens)["input_ids"]
        if ids.shape[1] < 2:
            return None
        with torch.inference_mode():
            loss = float(model(ids, labels=ids).loss)
        found = math.exp(min(loss, 700.0))
        return Objection("perplexity", found, step.max) if found > step.max else None

    return judge
