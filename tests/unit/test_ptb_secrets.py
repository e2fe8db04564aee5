"""A secret is found and redacted in every form in which programs print it, and never shown by us."""

import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.ptb.secrets import MissingSecret, Secrets, SecretSurvives, SecretTooShort

KEY = 'made/up+key="\\ü&%7 x'
"""With all that is escaped somewhere."""
PLAIN = "made-up-0123456789abcdef"

WRITTEN = {
    "as it is": KEY,
    "in JSON": json.dumps({"k": KEY}),
    "in JSON, beyond ASCII as it is": json.dumps({"k": KEY}, ensure_ascii=False),
    "in JSON in JSON": json.dumps(json.dumps({"k": KEY}, ensure_ascii=False), ensure_ascii=False),
    "in JSON with escaped slashes": json.dumps({"k": KEY}).replace("/", "\\/"),
    "in a URL": f"https://example.org/?k={quote(KEY)}&b=1",
    "in a URL, slashes too": quote(KEY, safe=""),
    "in a form": quote_plus(KEY),
    "in a URL, small letters": re.sub("%..", lambda match: match[0].lower(), quote(KEY, safe="")),
    "in base64": base64.b64encode(KEY.encode()).decode(),
    "in basic authentication": base64.b64encode(f"me:{KEY}".encode()).decode(),
    "within a longer base64": base64.b64encode(f"user={KEY}&more".encode()).decode(),
    "in URL-safe base64": base64.urlsafe_b64encode(f"{KEY}?>".encode()).decode(),
    "in hexadecimal": KEY.encode().hex(),
    "in capital hexadecimal": KEY.encode().hex().upper(),
    "over two lines": KEY[:9] + "\n" + KEY[9:],
    "over two lines of JSON": f'{{"out": "{PLAIN[:9]}\\n{PLAIN[9:]}"}}',
    "over two lines of a trace": f"{PLAIN[:9]}\n2026-11-30T08:32:41.123456Z out {PLAIN[9:]}",
    "letter by letter": " ".join(PLAIN),
    "base64 over lines": "\r\n".join(
        base64.b64encode(PLAIN.encode() * 4).decode()[at:][:20] for at in range(0, 128, 20)
    ),
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN.keys())
def test_a_secret_is_found_and_redacted_as_programs_write_it(text: str) -> None:
    secrets = Secrets({"SOME_KEY": KEY, "OTHER_KEY": PLAIN})
    data = f"before {text} after".encode()
    found = secrets.survivors(data)
    assert found in (("SOME_KEY",), ("OTHER_KEY",))
    redacted = secrets.redact(data)
    assert secrets.survivors(redacted) == ()
    assert f"[redacted {found[0]}]".encode() in redacted
    assert redacted.startswith(b"before ")
    assert redacted.endswith(b" after")


def test_what_was_json_stays_json() -> None:
    secrets = Secrets({"SOME_KEY": KEY})
    line = json.dumps({"command": f"curl -H 'k: {KEY}' x", "n": [KEY, 1]}).encode()
    assert json.loads(secrets.redact(line)) == {
        "command": "curl -H 'k: [redacted SOME_KEY]' x",
        "n": ["[redacted SOME_KEY]", 1],
    }


@given(st.text(st.characters(codec="utf-8"), min_size=8, max_size=40), st.binary(max_size=60), st.binary(max_size=60))
def test_any_secret_is_found_between_any_bytes_and_gone_after_redaction(
    value: str, before: bytes, after: bytes
) -> None:
    secrets = Secrets({"SOME_KEY": value})
    data = before + value.encode() + after
    assert secrets.survivors(data) == ("SOME_KEY",)
    # What stands around it may make it up again once; never twice.
    once = secrets.redact(data)
    assert value.encode() not in once or value in "[redacted SOME_KEY]"


@given(st.binary(max_size=200))
def test_bytes_without_it_are_left_alone(data: bytes) -> None:
    secrets = Secrets({"SOME_KEY": "made-up-0123456789abcdef-made-up"})
    assert secrets.redact(data) == data
    assert secrets.survivors(data) == ()
    assert Secrets({}).redact(data) == data


def test_a_secret_that_begins_another_does_not_hide_it() -> None:
    secrets = Secrets({"SHORT": "made-up-key", "LONG": "made-up-key-and-more"})
    assert secrets.redact(b"made-up-key made-up-key-and-more") == b"[redacted SHORT] [redacted LONG]"
    assert secrets.survivors(b"made-up-key-and-more") == ("LONG",)


def test_what_survives_is_named_and_never_shown() -> None:
    secrets = Secrets({"SOME_KEY": PLAIN})
    with pytest.raises(SecretSurvives) as error:
        secrets.check(b"x " + PLAIN.encode(), "the trace")
    assert "SOME_KEY is in the trace" in str(error.value)
    assert PLAIN not in f"{error.value}{secrets!r}{secrets}"
    secrets.check(b"x", "the trace")


def test_only_what_is_on_the_list_is_taken() -> None:
    source = {"SOME_KEY": PLAIN, "HOME": "/home/somebody", "EMPTY": ""}
    secrets = Secrets.taken(["SOME_KEY", "SOME_KEY"], source)
    assert secrets.environment() == {"SOME_KEY": PLAIN}
    assert secrets.names == ("SOME_KEY",)
    with pytest.raises(MissingSecret, match="no value for EMPTY, GONE: export"):
        Secrets.taken(["SOME_KEY", "EMPTY", "GONE"], source)
    with pytest.raises(SecretTooShort, match="PIN has 4 characters"):
        Secrets.taken(["PIN"], {"PIN": "1234"})
