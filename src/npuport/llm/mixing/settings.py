"""What a pipeline file for mixing may say, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from npuport.llm.pipelines.options import Execution, key

UNITS = ("documents", "characters", "tokens")


@dataclass(frozen=True)
class Source:
    """Where a part of the mixture comes from."""

    inputs: list[str] = key([], "JSONL (also .gz, .zst) or Parquet: files, folders or patterns")
    weight: float = key(1.0, "its part, beside the other weights", least=0)
    max_epochs: float = key(1.0, "how often each of its texts may be drawn, on average", least=0)


@dataclass(frozen=True)
class Mixing:
    """A pipeline file."""

    sources: dict[str, Source] = key({}, "a name for each, with inputs, weight and max-epochs")
    output: str = key("", "a new folder")
    size: int = key(0, "of the mixture, in its unit; 0: as much as the sources give", least=0)
    unit: str = key("documents", "what weights and size count", one_of=UNITS)
    tokenizer: str = key("", "a folder with a tokenizer of Hugging Face, for the unit tokens")
    seed: int = key(0, "another seed gives another order, and other texts where not all are drawn", least=0)
    text: str = key("text", "the field with the text")
    format: str = key("jsonl", "jsonl or parquet", one_of=("jsonl", "parquet"))
    task_megabytes: float = key(64, "of input for each task; also what an output file holds at most", least=0.01)
    executor: Execution = field(default_factory=Execution)
