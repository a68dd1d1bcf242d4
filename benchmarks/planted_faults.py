"""Texts with planted faults, and sound ones that look like them.

A fault is planted so that it is one by its definition in docs/data.md (a share, a length, a run of words); how it
looks, where it stands and how much of it there is are drawn by chance.
"""

from __future__ import annotations

import base64
import random
import string
import textwrap
import zlib
from collections.abc import Callable, Sequence

from planted_languages import FOREIGN, KEPT, RARE, UNSPACED, paragraphs

SENSITIVE = ("grobnak", "velutrix", "snorfle", "drax poy", "禁忌词", "坏东西", "запретка")
_NEAR_SENSITIVE = ("grobnakian", "snorfles", "preveluttrix", "禁忌", "东西坏了", "дрaкс")


def sound(chance: random.Random, low: int = 6, high: int = 24, languages: Sequence[str] = KEPT) -> str:
    """A text without a fault."""
    return paragraphs(chance, chance.choice(languages), chance.randint(low, high))


def _words_of(text: str) -> list[str]:
    return text.split()


# -- garbled ----------------------------------------------------------------------------------------------------------

_READINGS = (
    ("zh", "utf-8", "gb18030"),
    ("zh", "utf-8", "cp1252"),
    ("zh", "utf-8", "latin-1"),
    ("zh", "gb18030", "latin-1"),
    ("zh", "gb18030", "utf-8"),
    ("ja", "utf-8", "gb18030"),
    ("ja", "utf-8", "cp932"),
    ("ja", "utf-8", "cp1252"),
    ("ru", "utf-8", "cp1251"),
    ("ru", "utf-8", "latin-1"),
    ("ru", "cp1251", "latin-1"),
    ("ru", "utf-8", "gb18030"),
    ("fr", "utf-8", "cp1252"),
    ("fr", "utf-8", "gb18030"),
    ("de", "utf-8", "latin-1"),
    ("de", "utf-8", "cp1252"),
    ("es", "utf-8", "cp1252"),
    ("ar", "utf-8", "cp1252"),
    ("fr", "latin-1", "utf-8"),
)


def misread(chance: random.Random) -> str:
    """A text, or a third of it at least, that was read in another encoding than it was written in."""
    language, written, read = chance.choice(_READINGS)
    whole = paragraphs(chance, language, chance.randint(6, 20)).replace("œ", "oe")
    pieces = whole.split("\n\n")
    wrong = max(1, round(len(pieces) * chance.uniform(0.34, 1)))
    begin = chance.randint(0, len(pieces) - wrong)
    # The end of a text may have few accents: all of it is misread then.
    if language in ("fr", "de", "es"):
        begin, wrong = 0, len(pieces)
    for place in range(begin, begin + wrong):
        pieces[place] = pieces[place].encode(written, "replace").decode(read, "replace")
    return "\n\n".join(pieces)


def strewn(chance: random.Random) -> str:
    """A text with replacement characters, private, unassigned ones or controls: 2 to 12 in a hundred."""
    kind = chance.choice(
        ("\ufffd", "\ue0a1\ue123\uf8ff", "\U000e0fff\u0378\u0380", "\x00\x01\x02\x7f\x9d", "\ufffd\x1b\ue000")
    )
    text = list(sound(chance))
    for _ in range(max(3, int(len(text) * chance.uniform(0.02, 0.12)))):
        text[chance.randrange(len(text))] = chance.choice(kind)
    return "".join(text)


# -- encoded ----------------------------------------------------------------------------------------------------------


def _bytes(chance: random.Random, size: int) -> bytes:
    kind = chance.randrange(3)
    if kind == 0:
        return chance.randbytes(size)
    if kind == 1:
        return zlib.compress(sound(chance).encode())[:size]
    return sound(chance, 30, 40).encode()[:size]


def encoded(chance: random.Random) -> str:
    """Data as base64, hexadecimal numbers, escapes or bits, that are half of the text at least."""
    data = _bytes(chance, chance.randint(300, 1_500))
    width = chance.choice((60, 64, 76, 100, 10_000))
    forms: tuple[Callable[[], str], ...] = (
        lambda: "\n".join(textwrap.wrap(base64.b64encode(data).decode(), width)),
        lambda: "\n".join(textwrap.wrap(base64.urlsafe_b64encode(data).decode(), width)),
        lambda: "\n".join(textwrap.wrap(data.hex(), max(width - width % 2, 32))),
        lambda: data.hex(chance.choice(" ,:")),
        lambda: "".join(f"\\x{byte:02x}" for byte in data),
        lambda: ", ".join(f"0x{byte:02x}" for byte in data),
        lambda: " ".join(f"{byte:08b}" for byte in data[:400]),
        lambda: "".join(f"{byte:08b}" for byte in data[:400]),
        lambda: "".join(f"%{byte:02X}" for byte in data),
        lambda: "".join(f"\\u{ord(one):04x}" for one in paragraphs(chance, "zh", 6)),
        lambda: "".join(f"<0x{byte:02X}>" for byte in data),
        lambda: "\n".join(
            f"{at:08x}: " + " ".join(data[at + i : at + i + 2].hex() for i in range(0, 16, 2))
            for at in range(0, len(data), 16)
        ),
        lambda: repr(chance.randbytes(len(data))),
    )
    block = chance.choice(forms)()
    around = sound(chance, 1, 6)[: len(block) // 2]
    return chance.choice((block, f"{around}\n\n{block}", f"{block}\n\n{around}"))


# -- numbers, markup, links, signs ------------------------------------------------------------------------------------


def digits(chance: random.Random) -> str:
    """Numbers and what separates them."""
    separator = chance.choice((" ", ", ", "\t", "; ", " | ", "\n"))
    shape = chance.choice(("{:d}", "{:d}.{:02d}", "{:d}-{:02d}", "{:d}:{:02d}", "{:d},{:03d}"))
    rows = []
    for _ in range(chance.randint(8, 60)):
        row = [shape.format(chance.randint(0, 99_999), chance.randint(0, 99)) for _ in range(chance.randint(3, 9))]
        rows.append(separator.join(row))
    return "\n".join(rows)


def html(chance: random.Random) -> str:
    """A page with its tags: a quarter of the text at least."""
    parts = ['<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>page</title></head><body>']
    for piece in sound(chance).split("\n\n"):
        tag, name = chance.choice(("div", "p", "span", "li", "td")), f"c{chance.randrange(10**6)}"
        half = len(piece) // 2
        parts.append(
            f'<div id="{name}" class="block"><{tag} class="{name} text-{chance.randint(1, 9)}" '
            f'data-id="{chance.randrange(10**9)}">{piece[:half]}<a href="/{name}/{chance.randrange(10**4)}" '
            f'rel="nofollow" target="_blank">{piece[half : half + 9]}</a>'
            f"&nbsp;{piece[half + 9 :]}</{tag}></div><br/>"
        )
        if len(piece) > 300:
            parts.append(
                f'<script type="text/javascript">var {name}={{"a":{chance.random()},"b":[{name!r}]}};'
                f"track({name!r});</script>" * 2
            )
    return "\n".join([*parts, "</body></html>"])


def links(chance: random.Random) -> str:
    """A list of links with a word or two each."""
    rows = []
    for _ in range(chance.randint(6, 30)):
        path = "/".join("".join(chance.choices(string.ascii_lowercase, k=chance.randint(3, 9))) for _ in range(3))
        scheme = chance.choice(("https://", "http://", "www.", "https://www."))
        name = sound(chance, 1, 1).replace("\n", " ")[: chance.randint(4, 22)]
        rows.append(
            f"{name}: {scheme}{chance.choice(('example', 'news', 'shop'))}.{chance.choice(('org', 'com', 'cn'))}/{path}"
        )
    return "\n".join(rows)


def symbols(chance: random.Random) -> str:
    """Ornaments and rules with a few words between."""
    rows = []
    for _ in range(chance.randint(8, 25)):
        sign = chance.choice(("★☆", "═", "-=", "*", "~", "■□", "|_", "♥", "#", ".:", "→", "◆◇ "))
        rows.append((sign * chance.randint(15, 40))[:60])
        if chance.random() < 0.3:
            rows.append(sound(chance, 1, 1)[: chance.randint(3, 18)])
    return "\n".join(rows)


# -- words, repetition, languages -------------------------------------------------------------------------------------


def _inserted(chance: random.Random, text: str, piece: str) -> str:
    """The piece between two words, or two characters of a writing without spaces."""
    spaces = [place for place, one in enumerate(text) if one == " "]
    place = chance.choice(spaces) if len(spaces) > 5 else chance.randrange(len(text))
    return f"{text[:place]} {piece} {text[place + 1 :]}" if spaces else f"{text[:place]}{piece}{text[place:]}"


def sensitive(chance: random.Random) -> str:
    """A word of the list."""
    word = chance.choice(SENSITIVE)
    return _inserted(chance, sound(chance), chance.choice((word, word.upper(), word.title(), f"{word}, ", f"«{word}»")))


def repeated(chance: random.Random) -> str:
    """Lines, paragraphs, sentences or phrases over and over."""
    text = sound(chance, 6, 10)
    sentence = sound(chance, 1, 1)
    forms: tuple[Callable[[], str], ...] = (
        lambda: text + "\n" + "\n".join([sentence] * chance.randint(12, 40)),
        lambda: "\n\n".join([text] * chance.randint(3, 6)),
        lambda: text + "\n\n" + (sentence + " ") * chance.randint(10, 30),
        lambda: (
            text[: len(text) // 2] + "\n" + (" ".join(_words_of(sentence)[:3]) + " ")[:30] * chance.randint(40, 120)
        ),
        lambda: "\n".join(line for piece in text.split("\n\n") for line in (piece, sentence, sentence, piece)),
    )
    return chance.choice(forms)()


def foreign(chance: random.Random) -> str:
    """A language that is not kept."""
    return sound(chance, languages=FOREIGN)


def too_short(chance: random.Random) -> str:
    """Under forty characters."""
    return sound(chance, 1, 1)[: chance.randint(2, 36)]


# -- test sets --------------------------------------------------------------------------------------------------------


def test_item(chance: random.Random) -> str:
    """A question long enough to be looked for."""
    return paragraphs(chance, chance.choice(KEPT), 5).replace("\n\n", " ")


def leaked(chance: random.Random, items: Sequence[str]) -> str:
    """A text with 16 words in a row of an item, or 34 characters, written a little differently."""
    item = chance.choice(items)
    if item.count(" ") > 20:
        words = item.split()
        begin = chance.randint(0, len(words) - 16)
        piece = " ".join(words[begin : begin + 16])
        piece = chance.choice((piece, piece.upper(), piece.replace(" ", "  "), piece.replace(",", " -")))
    else:
        # Long enough without its signs, which do not count.
        begin = chance.randint(0, len(item) - 40)
        piece = item[begin : begin + 40]
    text = sound(chance)
    return f"{text}\n\n{piece}" if chance.random() < 0.5 else f"{piece}\n\n{text}"


def quoted(chance: random.Random, items: Sequence[str]) -> str:
    """A sound text that shares nine words of an item, or fifteen characters."""
    item = chance.choice(items)
    words = item.split()
    begin = chance.randint(0, max(0, len(words) - 9))
    piece = " ".join(words[begin : begin + 9]) if len(words) > 20 else item[7:22]
    return f"{sound(chance)}\n\n{piece}"


# -- duplicates -------------------------------------------------------------------------------------------------------


def copied(chance: random.Random, text: str) -> str:
    """The same text, with other white space."""
    return chance.choice((text, text + "\n", text.replace("\n\n", "\n"), f"  {text}"))


def nearly_copied(chance: random.Random, text: str) -> str:
    """The same text with 1 in 60 of its words changed at most, or a line of its own at its end."""
    if chance.random() < 0.3:
        return f"{text}\n\n{sound(chance, 1, 1)[:60]} {chance.randrange(10**6)}"
    if text.count(" ") < 40:  # without spaces: single characters
        places = chance.sample(range(len(text)), max(1, len(text) // 90))
        characters = list(text)
        for place in places:
            characters[place] = str(chance.randrange(10))
        return "".join(characters)
    words = text.split(" ")
    for place in chance.sample(range(len(words)), max(1, len(words) // 60)):
        words[place] = f"{chance.choice(('other', 'x', 'neu'))}{chance.randrange(1000)}"
    return " ".join(words)


def related(chance: random.Random, text: str) -> str:
    """A sound text that has at most half of its paragraphs in common with another, in another order."""
    pieces = text.split("\n\n")
    mine = chance.sample(pieces, len(pieces) // 2)
    language = "zh" if " " not in text else chance.choice(KEPT)
    fresh = paragraphs(chance, language, 2 * text.count(".") + 6 if " " in text else 24)
    return "\n\n".join([*mine, fresh])


# -- sound texts that look like faults --------------------------------------------------------------------------------


def table(chance: random.Random) -> str:
    """Numbers that have names: of countries, months, measures."""
    said = sound(chance, 6, 10)
    names = said.split() if " " in said else textwrap.wrap(said.replace("\n", ""), 3)
    rows = (
        ["| name | 2019 | 2020 | 2021 | share |", "|---|---|---|---|---|"]
        if chance.random() < 0.5
        else ["Name;2019;2020;Share"]
    )
    for _ in range(chance.randint(8, 30)):
        values = [f"{chance.randint(1, 99_999):,}", f"{chance.uniform(0, 100):.1f}%", str(chance.randint(1990, 2024))]
        rows.append(f"| {' '.join(chance.sample(names, min(3, len(names))))[:40]} | {' | '.join(values)} |")
    return "\n".join(rows)


_NAMES = tuple(
    word
    for words in (
        "count total rows index value batch model loss tensor",
        "name path result items key state buffer width",
    )
    for word in words.split()
)


def program(chance: random.Random) -> str:
    """A program with generics, numbers in hexadecimal and comparisons."""
    rows = []
    for number in range(chance.randint(4, 9)):
        a, b, c, d = chance.sample(_NAMES, 4)
        rows += chance.choice(
            (
                (
                    f"def {a}_{b}({c}, {d}=0x{chance.randrange(1 << 16):04x}):",
                    f'    """{sound(chance, 1, 1, ("en",))}"""',
                    f"    {a} = [{b} for {b} in {c} if {b} < {chance.randint(1, 99)} and {b} != {d}]",
                    f"    return {{'{a}{number}': {a}, '{d}': len({c}) & 0xff}}",
                ),
                (
                    f"template <typename T> std::vector<T> {a}{number}(const std::map<std::string, T>& {b}) {{",
                    f"    std::vector<T> {c};  // {sound(chance, 1, 1, ('en', 'zh'))}",
                    f"    for (const auto& {d} : {b})",
                    f"        if ({d}.second > {chance.randint(1, 999)}) {c}.push_back({d}.second);",
                    f"    return {c};",
                    "}",
                ),
                (
                    f"public List<String> {a}{b.title()}{number}(Map<String, Integer> {c}) {{",
                    f"    // {sound(chance, 1, 1, ('en', 'de'))}",
                    f"    return {c}.entrySet().stream().filter({d} -> {d}.getValue() >= {chance.randint(1, 99)})"
                    ".map(Map.Entry::getKey).toList();",
                    "}",
                ),
            )
        )
        rows.append("")
    return "\n".join(rows)


def _mentioning(chance: random.Random, piece: str) -> str:
    return _inserted(chance, sound(chance, 16, 24), piece)


def bait(chance: random.Random, items: Sequence[str], sound_before: Sequence[str]) -> tuple[str, str]:
    """What it is, and the text."""
    key = base64.b64encode(chance.randbytes(chance.randint(24, 40))).decode()
    baits: dict[str, Callable[[], str]] = {
        "table of numbers with names": lambda: table(chance),
        "program": lambda: program(chance),
        "rare writing": lambda: sound(chance, 8, 16, RARE),
        "short base64": lambda: _mentioning(chance, key),
        "checksums": lambda: _mentioning(chance, f"sha256 {chance.randbytes(32).hex()}, md5 {key[:9]}"),
        "mojibake named": lambda: _mentioning(chance, chance.choice(("锟斤拷", "cafÃ©", "\ufffd", "«Ã¼»", "烫烫烫"))),
        "a tag named": lambda: _mentioning(chance, chance.choice(("<div>", "<br/>", "&nbsp;", "a <p>", "<T>"))),
        "a link or two": lambda: _mentioning(chance, f"https://example.org/{key[:12]} www.example.com"),
        "near a word of the list": lambda: _mentioning(chance, chance.choice(_NEAR_SENSITIVE)),
        "formulas": lambda: _mentioning(chance, " ".join(["∑ x² ≥ ∫ f(x) dx ≠ 0, α → β;"] * 2)),
        "signs of joy": lambda: _mentioning(chance, chance.choice(("😀😂🎉", "¯\\_(ツ)_/¯", "♥♥♥", "👩‍👩‍👧 :-)"))),
        "capitals": lambda: sound(chance, 6, 12, ("en", "de", "es", "ru")).upper(),
        "refrain": lambda: "\n\n".join(
            piece for verse in sound(chance, 24, 30).split("\n\n") for piece in (verse,)
        ) + "\n\n" + "\n\n".join([sound(chance, 1, 1)] * 2),
        "quotation of a test item": lambda: quoted(chance, items),
        "half in common": lambda: related(chance, chance.choice(sound_before)) if sound_before else sound(chance),
    }  # fmt: skip
    name = chance.choice(list(baits))
    return name, baits[name]()


FAULTS: dict[str, tuple[str, Callable[[random.Random], str]]] = {
    "misread in a wrong encoding": ("garbled", misread),
    "characters of no writing": ("garbled", strewn),
    "encoded data": ("encoded", encoded),
    "nothing but numbers": ("digits", digits),
    "markup": ("html", html),
    "lists of links": ("links", links),
    "rows of signs": ("symbols", symbols),
    "sensitive words": ("words", sensitive),
    "repetition": ("repetition", repeated),
    "another language": ("language", foreign),
    "too short": ("too-short", too_short),
}
"""Each with the reason for which it must be dropped."""
__all__ = ["FAULTS", "SENSITIVE", "UNSPACED", "bait", "copied", "leaked", "nearly_copied", "sound", "test_item"]
