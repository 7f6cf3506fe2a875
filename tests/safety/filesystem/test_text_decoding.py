"""The encoding of a text is detected by its bytes."""

import pytest

from opposable.safety.filesystem.text_decoding import decode_text, detect_encoding


@pytest.mark.parametrize("text", ["Köln,12\nMünchen,30", "Größe", "Maß;Größe;Straße", "créée à Noël", "100 €", "20 °C"])
def test_western_letters_are_no_chinese_characters(text: str) -> None:
    content = text.encode("cp1252")
    assert detect_encoding(content) == "cp1252"
    assert decode_text(content) == text


@pytest.mark.parametrize(
    "text", ["北京,12", "A股", "K线图", "卡拉OK", "朱镕基,a", "中a国b", "價格,銷售額", "€北京", "ABC公司xyz"]
)
def test_chinese_characters_among_ascii_are_detected(text: str) -> None:
    content = text.encode("gb18030")
    assert detect_encoding(content) == "gb18030"
    assert decode_text(content) == text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "utf-8"])
def test_byte_order_marks_are_detected(encoding: str) -> None:
    assert decode_text("城市,Köln".encode(encoding)) == "城市,Köln"
