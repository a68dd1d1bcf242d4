"""Which family of architectures a task asks for, by what each computes.

A decoder-only model (GPT, Llama) writes token by token from all that stands before; an encoder-only model (BERT, Devlin
et al. 2019) sees a whole text at once and says something of it or of its words; an encoder-decoder model (T5, Raffel
et al. 2020) reads a whole text and writes another one.
"""

from __future__ import annotations

DECODER, ENCODER, BOTH = "decoder-only", "encoder-only", "encoder-decoder"

# The first one first. Large decoder-only models do what the small special ones do, at many times their cost.
ARCHITECTURES: dict[str, tuple[str, ...]] = {
    "chat": (DECODER,),
    "writing": (DECODER,),
    "code": (DECODER,),
    "summarization": (DECODER, BOTH),
    "translation": (BOTH, DECODER),
    "classification": (ENCODER,),
    "extraction": (ENCODER,),
}
