"""Words stand where they are said to stand."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veracity.core.errors import DataError, MissingExtra
from veracity.data import words as words_module
from veracity.data.words import read_text, text_of_tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't know... really?!", "I|don't|know|...|really|?|!"),
        ("rock'n'roll 'quoted' o’clock", "rock'n'roll|'|quoted|'|o’clock"),
        ("a_b --- 3.5%", "a|_|b|---|3|.|5|%"),
        ("<script>alert(1)</script>", "<|script|>|alert|(|1|)|<|/|script|>"),
        ("ok\x00 then\u200b", "ok|then"),
        (
            "cafe\u0301 \u0939\u093f\u0928\u094d\u0926\u0940",
            "cafe\u0301|\u0939\u093f\u0928\u094d\u0926\u0940",
        ),
        ("👍🏽👍", "👍🏽|👍"),
        ("👨‍👩‍👧‍👦❤️🇩🇪🇫🇷1️⃣", "👨‍👩‍👧‍👦|❤️|🇩🇪|🇫🇷|1️⃣"),
    ],
)
def test_words_of_alphabets(text: str, words: str) -> None:
    assert read_text(text).words == tuple(words.split("|"))


def test_chinese_words_have_offsets_and_no_white_space() -> None:
    text = read_text("我喜欢 这个酒店，服务很好！！ 👍🏽 don't")
    assert "|".join(text.words) == "我|喜欢|这个|酒店|，|服务|很|好|！！|👍🏽|don't"
    assert text.spans[1] == (1, 3)


def test_latin_letters_inside_chinese_words_stay_with_them() -> None:
    assert read_text("T恤和iPhone6手机").words == ("T恤", "和", "iPhone6", "手机")


def test_language_decides_over_looks() -> None:
    assert read_text("服务很好", "en").words == ("服务很好",)
    assert read_text("good", "zh").words == ("good",)
    with pytest.raises(DataError, match=r"auto, en, zh.*'fr'"):
        read_text("bon", "fr")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_spans_are_ordered_and_miss_nothing_that_can_be_read(text: str) -> None:
    found = read_text(text)
    assert all(start < end for start, end in found.spans)
    assert all(a[1] <= b[0] for a, b in zip(found.spans, found.spans[1:], strict=False))
    assert sum(c.isalnum() for word in found.words for c in word) == sum(map(str.isalnum, text))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_words_are_found_again_in_their_text(text: str) -> None:
    found = read_text(text, "en")
    if found.spans:
        assert text_of_tokens(found.words, text).words == found.words


def test_own_tokens_keep_their_slots() -> None:
    text = text_of_tokens(["it", "is", "what", "it", "is"], "with it is, what it is")
    assert text.spans == ((5, 7), (8, 10), (12, 16), (17, 19), (20, 22))


def test_own_tokens_may_cut_a_word() -> None:
    assert text_of_tokens(["do", "n't", "do"], "don't do").spans == ((0, 2), (2, 5), (6, 8))


def test_tokens_that_are_not_in_the_text_spell_it() -> None:
    assert text_of_tokens(["not", "there"], "something else").text == "not there"
    assert text_of_tokens(["服务", "好"], "别的").text == "服务好"
    assert text_of_tokens(["no", "text"]).spans == ((0, 2), (3, 7))


def test_without_jieba_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    words_module._segmenter.cache_clear()
    with pytest.raises(MissingExtra, match=r"veracity\[chinese\]"):
        read_text("很好")


def test_importing_is_light_and_chinese_is_silent() -> None:
    code = (
        "import sys, veracity.data.loading, veracity.data.words as d\n"
        "assert not {'torch', 'pyarrow', 'jieba', 'pandas'} & set(sys.modules)\n"
        "assert d.read_text('很好').words"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
