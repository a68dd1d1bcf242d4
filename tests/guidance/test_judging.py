"""Recipes of published trainings need no word; what is far from them is named, with the published value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from npuport.guidance.judging import Judgement, Recipe, judge

LLAMA_2_70B = Recipe(
    purpose="pretraining",
    parameters=69_000_000_000,
    rate=1.5e-4,
    final_share=0.1,
    warmup_share=2000 / 500_000,
    clipping=1.0,
    weight_decay=0.1,
    beta2=0.95,
    batch_tokens=4_000_000,
    tokens=2e12,
)
PUBLISHED = {
    "Llama 2 70B": LLAMA_2_70B,
    "GPT-3 175B": Recipe("pretraining", 175_000_000_000, 6e-5, 0.1, 0.00125, 1.0, 0.1, 0.95, 3_200_000),
    "Llama 3 405B": Recipe("pretraining", 405_000_000_000, 8e-5, 0.01, 0.0067, 1.0, 0.1, 0.95, 16_000_000, 15.6e12),
    "Pythia 1.4B": Recipe("pretraining", 1_400_000_000, 2e-4, 0.1, 0.01, 1.0, 0.1, 0.95, 2_097_152, 3e11),
    "Llama 2 chat": Recipe("fine-tuning", 69_000_000_000, 2e-5, 0.0, 0.03, 1.0, 0.1, 0.95, 64 * 4096),
    "Alpaca 7B": Recipe("fine-tuning", 7_000_000_000, 2e-5, 0.0, 0.03, 1.0, 0.0, 0.999),
    "QLoRA 65B": Recipe("lora", 65_000_000_000, 1e-4, 1.0, 0.03, 0.3, 0.0, 0.999),
}


def far(recipe: Recipe) -> list[Judgement]:
    return [one for one in judge(recipe) if one.status != "usual"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_recipes_need_no_word(name: str) -> None:
    assert far(PUBLISHED[name]) == []


@pytest.mark.parametrize(
    ("changed", "quantity", "status", "advised"),
    [
        ({"rate": 1.5e-3}, "rate", "unusual", 1.5e-4),
        ({"rate": 1.5e-6}, "rate", "note", None),
        ({"final_share": 1.0}, "final_share", "note", 0.1),
        ({"warmup_share": 0.0}, "warmup_share", "unusual", 0.00667),
        ({"warmup_share": 0.3}, "warmup_share", "note", 0.00667),
        ({"clipping": 0.0}, "clipping", "unusual", 1.0),
        ({"clipping": 10.0}, "clipping", "note", 1.0),
        ({"weight_decay": 0.0}, "weight_decay", "unusual", 0.1),
        ({"weight_decay": 1.0}, "weight_decay", "unusual", 0.1),
        ({"beta2": 0.999}, "beta2", "note", 0.95),
        ({"batch_tokens": 4096}, "batch_tokens", "unusual", None),
        ({"batch_tokens": 400_000_000}, "batch_tokens", "unusual", None),
        ({"tokens": 1e9}, "tokens", "note", None),
        ({"fixed_scale": 128.0}, "fixed_scale", "note", None),
    ],
)
def test_what_is_far_from_published_is_named(
    changed: dict[str, Any], quantity: str, status: str, advised: float | None
) -> None:
    [found] = far(replace(LLAMA_2_70B, **changed))
    assert (found.quantity, found.status, found.advised) == (quantity, status, advised)
    assert "published" in str(found.text) or "dynamic" in str(found.text)


def test_continuing_a_trained_model_is_judged_more_mildly() -> None:
    continued = replace(LLAMA_2_70B, purpose="continued pretraining", weight_decay=0.0, batch_tokens=4096)
    assert {one.status for one in far(continued)} == {"note"}


def test_what_is_not_known_is_not_judged() -> None:
    assert list(judge(Recipe())) == []
    # A rate that is right for one purpose is not called high where the purpose is not known.
    assert far(Recipe(rate=2e-4)) == []
    assert [one.quantity for one in far(Recipe(rate=1.0))] == ["rate"]


def test_fine_tuning_is_judged_by_fine_tunings() -> None:
    assert [one.status for one in far(Recipe("fine-tuning", 7_000_000_000, rate=1e-4))] == ["note"]
    assert [one.status for one in far(Recipe("fine-tuning", 7_000_000_000, rate=1e-3))] == ["unusual"]
    assert far(Recipe("lora", 7_000_000_000, rate=2e-4, warmup_share=0.0)) == []
