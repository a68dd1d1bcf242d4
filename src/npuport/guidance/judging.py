"""Whether what a training of a language model was told is near what published trainings used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from npuport.facts import PublishedValue, published_values
from npuport.findings import Sentence, say

Purpose = Literal["pretraining", "continued pretraining", "fine-tuning", "lora", "unknown"]
Status = Literal["usual", "note", "unusual"]

_HIGH = 4.0  # times the largest published rate of this size
_HIGH_TUNING = 10.0  # of a fine-tuning: those of small models are often several times the published ones
_LOW = 30.0  # times below the smallest
_DECAY_HIGH = 3.0  # times the published one
_CLIPPING_HIGH = 5.0
_BETA2_HIGH = 0.99
_SMALL_BATCH, _LARGE_BATCH = 1 / 64, 8.0  # of the published ones
_END_HIGH = 0.3  # share of the peak
_WARM_UP_LONG = {"pretraining": 0.05, "continued pretraining": 0.05, "fine-tuning": 0.2, "lora": 0.2, "unknown": 0.2}
_FEW_TOKENS = 1 / 4  # of the published ratio


@dataclass(frozen=True)
class Recipe:
    """What a training was told; None where it is not known.

    ``parameters`` is the size of a dense model, None also for mixtures of experts, of which no size is published here.
    ``final_share`` is the last learning rate over the peak, ``warmup_share`` that of all steps; ``clipping`` 0 means
    none; ``batch_tokens`` are those of one optimizer step over all devices, ``tokens`` those of the training.
    ``fixed_scale`` is a loss scale that does not change (fp16 alone has one). ``is_warming`` says that the rate may be
    below its peak still.
    """

    purpose: Purpose = "unknown"
    parameters: int | None = None
    rate: float | None = None
    final_share: float | None = None
    warmup_share: float | None = None
    clipping: float | None = None
    weight_decay: float | None = None
    beta2: float | None = None
    batch_tokens: int | None = None
    tokens: float | None = None
    fixed_scale: float | None = None
    is_warming: bool = False


@dataclass(frozen=True)
class Judgement:
    """``quantity`` names a field of the recipe. "note": far from what was published, and may well be right.

    ``advised`` is a published value to take instead, where one fits.
    """

    quantity: str
    status: Status
    text: Sentence
    advised: float | None = None


def judge(recipe: Recipe) -> Iterator[Judgement]:
    """What is known of the recipe beside what was published, one judgement for each value that can be judged."""
    yield from _rate(recipe)
    yield from _end(recipe)
    yield from _warm_up(recipe)
    yield from _clipping(recipe)
    yield from _beta2(recipe)
    yield from _weight_decay(recipe)
    yield from _batch(recipe)
    yield from _tokens(recipe)
    yield from _loss_scale(recipe)


def _pretrains(recipe: Recipe) -> bool:
    return recipe.purpose in ("pretraining", "continued pretraining")


def _rate(recipe: Recipe) -> Iterator[Judgement]:
    rate, size = recipe.rate, recipe.parameters
    if rate is None:
        return
    near = _published_rates(recipe)
    highest, lowest = max(near, key=lambda one: one.value), min(near, key=lambda one: one.value)
    sized = say("a model of unknown size") if size is None else say("{size} parameters", size=short(size))
    if rate > _HIGH * highest.value:
        limit = _HIGH if _pretrains(recipe) else _HIGH_TUNING
        yield Judgement(
            "rate",
            "unusual" if rate > limit * highest.value else "note",
            say(
                "learning rate {rate} is high for {size}: published {value} ({source})",
                rate=f"{rate:g}",
                size=sized,
                value=f"{highest.value:g}",
                source=highest.basis.source,
            ),
            advised=highest.value,
        )
    elif _pretrains(recipe) and not recipe.is_warming and rate < lowest.value / _LOW:
        yield Judgement(
            "rate",
            "note",
            say(
                "learning rate {rate} is low for {size}: published {value} ({source}); right where a trained model "
                "is continued",
                rate=f"{rate:g}",
                size=sized,
                value=f"{lowest.value:g}",
                source=lowest.basis.source,
            ),
        )
    else:
        yield _usual("rate", near)


def _published_rates(recipe: Recipe) -> Sequence[PublishedValue]:
    """Those of the size that is nearest by factor; of all sizes and purposes where these are not known."""
    if recipe.purpose == "unknown":
        # Nothing is said against what is usual for any of them.
        purposes: tuple[str, ...] = ("pretraining", "fine-tuning", "lora")
    else:
        purposes = ("pretraining",) if _pretrains(recipe) else (recipe.purpose,)
    return [
        one for purpose in purposes for one in _nearest(published_values("learning_rate", purpose), recipe.parameters)
    ]


def _end(recipe: Recipe) -> Iterator[Judgement]:
    share = recipe.final_share
    if share is None or not _pretrains(recipe):
        return
    known = published_values("final_share")
    if share > _END_HIGH:
        text = say(
            "the learning rate ends at {share} of its peak; published {value} ({source})",
            share=f"{share:.0%}",
            value=f"{known[0].value:.0%}",
            source=known[0].basis.source,
        )
        yield Judgement("final_share", "note", text, advised=known[0].value)
    else:
        yield _usual("final_share", known, percent=True)


def _warm_up(recipe: Recipe) -> Iterator[Judgement]:
    share = recipe.warmup_share
    if share is None:
        return
    known = published_values("warmup_share", _warm_up_table(recipe))
    if share == 0 and recipe.purpose not in ("lora", "unknown"):
        text = say("no warm-up; published {value} of the steps ({source})", **_range(known, percent=True))
        status: Status = "unusual" if recipe.purpose == "pretraining" else "note"
        yield Judgement("warmup_share", status, text, advised=max(one.value for one in known))
    elif share > _WARM_UP_LONG[recipe.purpose]:
        text = say(
            "the warm-up takes {share} of the steps; published {value} ({source})",
            share=f"{share:.1%}",
            **_range(known, percent=True),
        )
        yield Judgement("warmup_share", "note", text, advised=max(one.value for one in known))
    else:
        yield _usual("warmup_share", known, percent=True)


def _warm_up_table(recipe: Recipe) -> str:
    if _pretrains(recipe):
        return "pretraining"
    return "lora" if recipe.purpose == "lora" else "fine-tuning"


def _clipping(recipe: Recipe) -> Iterator[Judgement]:
    if recipe.clipping is None:
        return
    known = published_values("clipping")
    if recipe.clipping == 0:
        text = say("no gradient clipping; published {value} ({source})", **_range(known))
        yield Judgement("clipping", "unusual", text, advised=known[0].value)
    elif recipe.clipping > _CLIPPING_HIGH * known[0].value:
        text = say(
            "gradients are clipped at {norm} only; published {value} ({source})",
            norm=f"{recipe.clipping:g}",
            **_range(known),
        )
        yield Judgement("clipping", "note", text, advised=known[0].value)
    else:
        yield _usual("clipping", known)


def _weight_decay(recipe: Recipe) -> Iterator[Judgement]:
    decay = recipe.weight_decay
    if decay is None:
        return
    known = published_values("weight_decay")
    if decay > _DECAY_HIGH * known[0].value or (decay == 0 and _pretrains(recipe)):
        text = say("weight decay {decay}; published {value} ({source})", decay=decay, **_range(known))
        status: Status = "note" if recipe.purpose == "continued pretraining" else "unusual"
        yield Judgement("weight_decay", status, text, advised=known[0].value)
    else:
        yield _usual("weight_decay", known)


def _beta2(recipe: Recipe) -> Iterator[Judgement]:
    if recipe.beta2 is None or not _pretrains(recipe):
        return
    known = published_values("beta2")
    if recipe.beta2 > _BETA2_HIGH:
        text = say(
            "beta2 {beta}; published {value} ({source}): after a spike it takes longer to recover",
            beta=recipe.beta2,
            **_range(known),
        )
        yield Judgement("beta2", "note", text, advised=known[0].value)
    else:
        yield _usual("beta2", known)


def _batch(recipe: Recipe) -> Iterator[Judgement]:
    tokens = recipe.batch_tokens
    if tokens is None or not _pretrains(recipe):
        return
    near = _nearest(published_values("batch_tokens"), recipe.parameters)
    low, high = min(one.value for one in near), max(one.value for one in near)
    if tokens < _SMALL_BATCH * low or tokens > _LARGE_BATCH * high:
        text = say(
            "{tokens} tokens in a step (micro-batch x accumulation x processes); published {value} ({source})",
            tokens=f"{tokens:,}",
            value=f"{low:,.0f}",
            source=near[0].basis.source,
        )
        yield Judgement("batch_tokens", "unusual" if recipe.purpose == "pretraining" else "note", text)
    else:
        yield _usual("batch_tokens", near)


def _tokens(recipe: Recipe) -> Iterator[Judgement]:
    if recipe.tokens is None or recipe.parameters is None or not _pretrains(recipe):
        return
    known = published_values("tokens_per_parameter")
    ratio = recipe.tokens / recipe.parameters
    if ratio < _FEW_TOKENS * known[0].value:
        text = say(
            "{ratio} tokens for each parameter; published {value} ({source}): a smaller model, or more text, "
            "unless a trained model is continued",
            ratio=f"{ratio:.2g}",
            **_range(known),
        )
        yield Judgement("tokens", "note", text)
    else:
        yield _usual("tokens", known)


def _loss_scale(recipe: Recipe) -> Iterator[Judgement]:
    if recipe.fixed_scale is None:
        return
    text = say(
        "the loss scale stays at {scale}: gradients that overflow or vanish change nothing; a dynamic one begins with "
        "{value} ({source})",
        scale=f"{recipe.fixed_scale:g}",
        **_range(published_values("loss_scale")),
    )
    yield Judgement("fixed_scale", "note", text)


def _nearest(known: Sequence[PublishedValue], size: int | None) -> Sequence[PublishedValue]:
    """The published values of the size that is nearest by factor; all, where the size is not known."""
    if size is None:
        return known
    distances = [abs(math.log(size / one.parameters)) if one.parameters else math.inf for one in known]
    return [one for one, distance in zip(known, distances, strict=True) if distance <= min(distances) + 0.15]


def _usual(quantity: str, known: Sequence[PublishedValue], *, percent: bool = False) -> Judgement:
    return Judgement(quantity, "usual", say("published {value} ({source})", **_range(known, percent=percent)))


def _range(known: Sequence[PublishedValue], *, percent: bool = False) -> dict[str, str]:
    """Least and largest of published values, with the sources of both."""
    ends = min(known, key=lambda one: one.value), max(known, key=lambda one: one.value)
    texts = list(dict.fromkeys(f"{100 * one.value:g} %" if percent else _plain(one.value) for one in ends))
    sources = list(dict.fromkeys(one.basis.source for one in ends))
    return {"value": " – ".join(texts), "source": "; ".join(sources)}


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:g}"


def short(number: float) -> str:
    """A number of parameters for people."""
    return f"{number / 1e9:.1f} B" if number >= 1e9 else f"{number / 1e6:.0f} M"
