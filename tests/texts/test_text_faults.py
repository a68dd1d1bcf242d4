"""Marks of text that was read wrongly, or is no text."""

from __future__ import annotations

import base64

import pytest

from npuport.texts.characters import characters
from npuport.texts.encoded import encoded_pieces
from npuport.texts.garbled import misread

SOUND = {
    "zh": "昇腾处理器上的训练需要把数据清洗干净，否则模型会学到错误的内容。重复的文本会让损失曲线出现尖峰。",
    "tw": "學生們在圖書館裡讀書，後來他們談到天氣和城市裡的新學校，老師說數據的品質比數量更重要，處理器訓練模型。",
    "ja": "東京の学生たちは図書館で本を読みながら、新しい言葉を学びました。それから天気について話しました。",
    "ko": "학생들은 도서관에서 책을 읽고 새로운 단어를 배웠습니다. 그리고 날씨에 대해 이야기했습니다.",
    "ru": "Студенты читали книги в библиотеке, а потом долго говорили о погоде и о новой школе в городе.",
    "fr": "Les élèves ont été très étonnés par la réponse du maître, dont l'été était déjà passé à côté.",
    "de": "Die Schüler hörten, dass die Straße größer wäre; schöne Grüße aus München und Köln über Nacht.",
    "is": "Það er gott að læra íslensku því hún er falleg og þótt hún sé erfið þá er það þess virði að ná því.",
    "quotes": "»Größe« – ‘Ärger’ “ÉTÉ” · 20 °C ± 3 µm © ® ½ ¿Qué? ¡Sí! ª º × ÷ § ¶",
    "signs": "★☆★☆★☆★☆ ◆◇◆◇◆◇ ■□■□■□ →→→→ ♥♥♥♥",
}


@pytest.mark.parametrize("language", SOUND)
def test_ordinary_text_is_not_taken_for_mojibake(language: str) -> None:
    assert misread(SOUND[language]) is None
    assert characters(SOUND[language]).foreign == 0


@pytest.mark.parametrize(
    ("language", "written", "read"),
    [
        ("zh", "utf-8", "gb18030"),
        ("zh", "utf-8", "latin-1"),
        ("zh", "utf-8", "cp1252"),
        ("zh", "utf-8", "cp1251"),
        ("zh", "gb18030", "latin-1"),
        ("ja", "utf-8", "cp932"),
        ("ja", "utf-8", "gb18030"),
        ("ko", "cp949", "latin-1"),
        ("ru", "utf-8", "cp1251"),
        ("ru", "utf-8", "latin-1"),
        ("ru", "utf-8", "gb18030"),
        ("ru", "cp1251", "latin-1"),
        ("fr", "utf-8", "cp1252"),
        ("fr", "utf-8", "gb18030"),
        ("de", "utf-8", "latin-1"),
        ("is", "utf-8", "cp1252"),
    ],
)
def test_text_read_in_a_wrong_encoding_is_told(language: str, written: str, read: str) -> None:
    found = misread(SOUND[language].encode(written, "replace").decode(read, "replace"))
    assert found is not None
    assert found.share > 0.03


@pytest.mark.parametrize(("language", "written"), [("zh", "gb18030"), ("ko", "cp949"), ("ru", "cp1251")])
def test_bytes_that_are_no_utf8_leave_replacement_characters(language: str, written: str) -> None:
    counts = characters(SOUND[language].encode(written).decode("utf-8", "replace"))
    assert counts.foreign > 0.3 * counts.length


def test_a_text_garbled_in_part_is_told_by_its_share() -> None:
    wrong = SOUND["zh"].encode().decode("gb18030", "replace")
    found = misread(SOUND["zh"] * 9 + wrong * 3)
    assert found is not None
    assert 0.1 < found.share < 0.5


DATA = bytes(range(256)) * 2


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(DATA[5:]).decode(),
        base64.b64encode(SOUND["fr"].encode()).decode(),
        base64.encodebytes(DATA).decode(),
        DATA.hex(),
        DATA.hex(" "),
        SOUND["de"].encode("ascii", "ignore").hex(),
        repr(DATA),
        ", ".join(map(hex, DATA)),
        " ".join(f"{byte:08b}" for byte in DATA),
        "".join(f"%{byte:02X}" for byte in DATA),
        SOUND["zh"].encode("unicode_escape").decode(),
        "".join(f"<0x{byte:02X}>" for byte in DATA),
    ],
)
def test_data_is_told_from_language(text: str) -> None:
    assert sum(map(len, encoded_pieces(text))) > 0.8 * len(text)  # of bytes as Python shows them, some are letters


@pytest.mark.parametrize(
    "text",
    [
        *SOUND.values(),
        "def train_one_epoch_with_gradient_accumulation_and_clipping(model, optimizer): return model",
        "see https://example.org/a/very/long/path/to/something/that/is/named/2024/10/index-of-files.html",
        "12 34 56 78 90 11 22 33 44 55 66 77 88 99 10 20 30 40 50 60 70 80 90",
        "1990 1991 1992 1993 1994 1995 1996 1997 1998 1999 2000 2001 2002 2003",
        "----------------------------------------------------------------------------",
        "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz",
        r"C:\Users\name\Documents and \u00e9 once",
    ],
)
def test_ordinary_text_holds_no_data(text: str) -> None:
    assert not list(encoded_pieces(text))


def test_vowel_signs_are_letters_and_spaces_are_not_visible() -> None:
    counts = characters("नदी 12\n%")
    assert (counts.letters, counts.digits, counts.symbols, counts.visible) == (3, 2, 1, 6)
