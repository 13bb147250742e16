"""A pasted key is cleaned of what came with it, what is no key is refused, and no message repeats the key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.login.key_text import cleaned_key, looks_like_key, masked, vendor_of
from bradawl.core.errors import SettingsError

KEY = "sk-proj-" + "Ab3dEf6hIj9kLmNo"


@pytest.mark.parametrize(
    ("pasted", "removed"),
    [
        (KEY, ()),
        (f"{KEY}\n", ()),
        (f"{KEY}\r\n", ()),
        (f"  {KEY} \n", ("blanks around it",)),
        (f"\n\n{KEY}\n", ("blanks around it",)),
        (f"{KEY[:12]}\n{KEY[12:]}\n", ("line breaks in it",)),
        (f"{KEY[:12]}\r\n  {KEY[12:]}", ("blanks in it", "line breaks in it")),
        (f"{KEY[:12]} {KEY[12:]}", ("blanks in it",)),
        (f'"{KEY}"', ("quotes",)),
        (f"'{KEY}", ("quotes",)),
        (f"\u201c{KEY}\u201d", ("quotes",)),
        (f"`{KEY}`", ("quotes",)),
        (f"export OPENAI_API_KEY={KEY}", ("the name of the variable",)),
        (f"export OPENAI_API_KEY='{KEY}';", ("quotes", "the name of the variable")),
        (f"OPENAI_API_KEY = {KEY}", ("the name of the variable",)),
        (f"set -gx OPENAI_API_KEY {KEY}", ("the name of the variable",)),
        (f"setenv OPENAI_API_KEY {KEY}", ("the name of the variable",)),
        (f"export X={KEY}", ("the name of the variable",)),
        (f'$env:OPENAI_API_KEY = "{KEY}"', ("quotes", "the name of the variable")),
        (f'"api_key": "{KEY}",', ("quotes", "the name of the variable")),
        (f"Authorization: Bearer {KEY}", ("the name of the header",)),
        (f"Bearer {KEY}", ("the name of the header",)),
        (f"x-api-key: {KEY}", ("the name of the header",)),
        (f"\u200b{KEY}\ufeff", ("invisible characters",)),
        (f"\x1b[200~{KEY}\x1b[201~", ("invisible characters",)),
    ],
)
def test_what_came_with_a_key_is_removed_and_named(pasted, removed):
    cleaned = cleaned_key(pasted)
    assert cleaned.key == KEY
    assert set(cleaned.removed) == set(removed)
    assert KEY not in repr(cleaned)


@pytest.mark.parametrize("key", ["AbcKeyAbc==", "a=b", "token-123", "k", "passw0rd=", "sk_test_a.b-c", "12345:abcdef"])
def test_unusual_keys_stay_as_they_are(key):
    assert cleaned_key(key) == (key, ())


@pytest.mark.parametrize("text", ["", "\n", "  ", '""', "\u200b"])
def test_nothing_is_an_empty_key(text):
    assert cleaned_key(text).key == ""


@pytest.mark.parametrize(
    "text",
    [
        *("$OPENAI_API_KEY", "${OPENAI_API_KEY}", "%OPENAI_API_KEY%", "OPENAI_API_KEY", "YOUR_API_KEY_HERE"),
        *(
            "<your key>",
            "your-api-key",
            "sk-...",
            "sk-proj-...",
            "xxxxxxxx",
            "********",
            "export OPENAI_API_KEY=sk-...",
        ),
    ],
)
def test_placeholders_are_refused(text):
    with pytest.raises(SettingsError, match="placeholder"):
        cleaned_key(text)


@pytest.mark.parametrize("text", [f"{KEY}é", f"ключ{KEY}", "日本語"])
def test_characters_that_no_key_has_are_refused_without_repeating_it(text):
    with pytest.raises(SettingsError, match="no key has") as caught:
        cleaned_key(text)
    assert KEY not in str(caught.value)


@given(st.text(max_size=80))
def test_a_cleaned_key_is_printable_ascii_without_blanks(text):
    try:
        key = cleaned_key(text).key
    except SettingsError:
        return
    assert key.isascii() and not any(character.isspace() for character in key)
    assert key == "" or key.isprintable()


@given(st.from_regex(r"[A-Za-z0-9_-]{16,60}", fullmatch=True))
def test_only_the_last_four_characters_of_a_key_are_shown(key):
    assert masked(key) == f"…{key[-4:]}"
    assert masked(key[:15]) == "…"


@pytest.mark.parametrize(("key", "vendor"), [("sk-ant-x", "anthropic"), ("gsk_x", "groq"), ("sk-x", ""), ("", "")])
def test_the_beginning_of_a_key_tells_its_vendor(key, vendor):
    assert vendor_of(key) == vendor


@pytest.mark.parametrize(
    ("word", "expected"),
    [(KEY, True), ("A1" * 20, True), ("openai", False), ("authentication-middleware-page", False), ("sk-", False)],
)
def test_a_key_in_the_wrong_place_is_recognised(word, expected):
    assert looks_like_key(word) is expected
