"""What a pipeline file for cleaning may say, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from npuport.llm.pipelines.options import Execution, key


@dataclass(frozen=True)
class Length:
    """Too short to teach anything, or too long to be one text."""

    min_characters: int = key(40, "shorter texts are dropped", least=0)
    max_characters: int = key(2_000_000, "longer texts are dropped", least=1)


@dataclass(frozen=True)
class Garbled:
    """Mojibake (UTF-8 read as Latin-1, GBK, … and the reverse), replacement characters, private, unassigned ones."""

    max_share: float = key(0.01, "of all characters", least=0, most=1)


@dataclass(frozen=True)
class Encoded:
    """Base64, hexadecimal numbers, byte strings, binary digits."""

    max_share: float = key(0.3, "of all characters", least=0, most=1)


@dataclass(frozen=True)
class Digits:
    """Texts of nothing but numbers."""

    max_share: float = key(0.95, "of digits among letters and digits", least=0, most=1)


@dataclass(frozen=True)
class Symbols:
    """Ornaments, rows of signs."""

    max_share: float = key(0.5, "of what is neither letter nor digit among all that is visible", least=0, most=1)


@dataclass(frozen=True)
class Html:
    """Tags, scripts and entities that an extraction left."""

    max_share: float = key(0.2, "of all characters in tags, comments and entities", least=0, most=1)


@dataclass(frozen=True)
class Links:
    """Lists of links."""

    max_share: float = key(0.3, "of all characters in web addresses", least=0, most=1)


@dataclass(frozen=True)
class Language:
    """Texts in other languages than those kept; not run while none is named."""

    keep: list[str] = key([], "ISO 639-1 codes, such as [en, zh]")
    min_confidence: float = key(
        0.5, "a text is dropped only where another language is at least so sure", least=0, most=1
    )


@dataclass(frozen=True)
class Words:
    """Sensitive words; not run without a list."""

    files: list[str] = key([], "text files in UTF-8, one word or phrase a line; lines that begin with # are comments")
    max_hits: int = key(0, "texts with more are dropped; letters match as whole words in any case", least=0)


@dataclass(frozen=True)
class Repetition:
    """Lines, paragraphs and phrases over and over: the measures of Gopher (arXiv 2112.11446, table A1), by datatrove.

    Words are runs of letters; of writings without spaces, pairs of characters.
    """

    strictness: float = key(1.0, "the thresholds of the paper are divided by this", least=0.1, most=10)


@dataclass(frozen=True)
class Contamination:
    """Texts that hold a part of a test set; not run without one."""

    tests: list[str] = key([], "JSONL, Parquet or text files (.txt, an item a line)")
    fields: list[str] = key([], "the fields of a test item to look for; none: every field with text")
    words: int = key(
        13, "in a row that no text may share with an item; characters of Chinese and the like: twice", least=5
    )


@dataclass(frozen=True)
class Perplexity:
    """Texts that a language model finds unlikely; not run without a model."""

    model: str = key("", "a folder with a causal language model of Hugging Face, and its tokenizer")
    max: float = key(1_000.0, "texts with more are dropped", least=1)
    tokens: int = key(1_024, "of each text that are looked at, from its beginning", least=2)


@dataclass(frozen=True)
class Duplicates:
    """The same text again, but for white space; the first is kept."""


@dataclass(frozen=True)
class NearDuplicates:
    """MinHash (datatrove's signatures and buckets), with each match verified; the first text of a group is kept."""

    similarity: float = key(0.7, "share of pieces in common (Jaccard), estimated from 125 hashes", least=0.5, most=1)
    words: int = key(5, "of a piece; of Chinese and the like, characters", least=1, most=50)


@dataclass(frozen=True)
class Steps:
    """In the order in which they run; the first that objects drops a text. ``NAME: false`` leaves one out."""

    length: Length | None = field(default_factory=Length)
    garbled: Garbled | None = field(default_factory=Garbled)
    encoded: Encoded | None = field(default_factory=Encoded)
    digits: Digits | None = field(default_factory=Digits)
    html: Html | None = field(default_factory=Html)
    links: Links | None = field(default_factory=Links)
    symbols: Symbols | None = field(default_factory=Symbols)
    words: Words | None = field(default_factory=Words)
    repetition: Repetition | None = field(default_factory=Repetition)
    language: Language | None = field(default_factory=Language)
    contamination: Contamination | None = field(default_factory=Contamination)
    perplexity: Perplexity | None = field(default_factory=Perplexity)
    duplicates: Duplicates | None = field(default_factory=Duplicates)
    near_duplicates: NearDuplicates | None = field(default_factory=NearDuplicates)


@dataclass(frozen=True)
class Cleaning:
    """A pipeline file."""

    inputs: list[str] = key([], "JSONL (also .gz, .zst) or Parquet: files, folders or patterns")
    output: str = key("", "a new folder")
    text: str = key("text", "the field with the text")
    format: str = key("jsonl", "of what is kept: jsonl or parquet", one_of=("jsonl", "parquet"))
    task_megabytes: float = key(64, "of input for each task; also what an output file is made of", least=0.01)
    steps: Steps = field(default_factory=Steps)
    executor: Execution = field(default_factory=Execution)
