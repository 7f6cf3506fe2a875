"""Secrets are redacted from stored values, and nothing else changes."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opposable.safety.redaction import (
    REDACTED,
    is_secret_key,
    is_secret_setting,
    may_hold_secrets,
    redact,
    redact_known_secrets,
)

R = REDACTED
KEY = "sk-abcdefghijklmnopqrstuvwx"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"

SECRET_KEYS = [
    "password",
    "Password",
    "user_password",
    "userPassword",
    "PASSWORD",
    "DB_PASSWD",
    "pwd",
    "passphrase",
    "secret",
    "client_secret",
    "clientSecret",
    "token",
    "access_token",
    "accessToken",
    "accesstoken",
    "authtoken",
    "refresh_tokens",
    "id_token",
    "github.token",
    "api_key",
    "apiKey",
    "APIKey",
    "API-KEY",
    "X-Api-Key",
    "x_api_key",
    "apikey",
    "api_keys",
    "aws_secret_access_key",
    "private_key",
    "privateKey",
    "authorization",
    "Authorization",
    "proxy-authorization",
    "auth",
    "cookie",
    "Set-Cookie",
    "cookies",
    "credentials",
    "session_id",
    "csrf_token",
    "jwt",
    "otp",
    "密码",
    "用户密码",
    "登录口令",
    "密钥",
    "访问令牌",
    "验证码",
]
PLAIN_KEYS = [
    "max_tokens",
    "token_count",
    "tokens",
    "tokenizer",
    "next_page_token",
    "nextPageToken",
    "continuation_token",
    "eos_token",
    "author",
    "authors",
    "authority",
    "secretary",
    "keyboard",
    "key",
    "keys",
    "monkey",
    "password_length",
    "token_type",
    "passage",
    "compass",
    "credit",
    "cookiecutter",
    "session",
    "pagination",
    "pin",
    "public_key",
    "primary_key",
    "auth_mode",
    "AUTH_USERNAME",
    "token_path",
    "cookie_domain",
    "name",
    "用户",
    "密",
    "名称",
    "_",
    "1",
]


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_the_value_of_a_secret_key_is_redacted(key):
    assert is_secret_key(key)
    assert redact({"deep": [{key: "hunter2"}, {key: ["a", "b"]}, {key: {"x": "y"}}, {key: 12345}]}) == {
        "deep": [{key: R}, {key: R}, {key: R}, {key: R}]
    }


@pytest.mark.parametrize("key", PLAIN_KEYS)
def test_the_value_of_any_other_key_is_unchanged(key):
    assert not is_secret_key(key)
    value = {key: ["hunter2", {key: 5}]}
    assert redact(value) == value


SHAPES = [
    # what says nothing stays as it is
    ({"password": None, "token": True, "secret": "", "auth": {}, "cookie": []},) * 2,
    ({"a": [1, 2.5, None, True, "text"], "b": {}},) * 2,
    # pairs, objects of name and value, command lines
    (
        {"headers": [["Authorization", "abc"], ["Accept", "x/y"]]},
        {"headers": [["Authorization", R], ["Accept", "x/y"]]},
    ),
    (
        [{"name": "X-Api-Key", "value": "abc"}, {"name": "n", "value": "v"}],
        [{"name": "X-Api-Key", "value": R}, {"name": "n", "value": "v"}],
    ),
    ([{"key": "密码", "value": "一二三"}], [{"key": "密码", "value": R}]),
    (["curl", "--token", "abc", "-v"], ["curl", "--token", R, "-v"]),
    (["tool", "--password=hunter2", "x"], ["tool", f"--password={R}", "x"]),
    (["the", "password", "is", "long"],) * 2,
    # inside texts
    ("Authorization: Bearer abc.def", f"Authorization: {R}"),
    ("curl -H 'Authorization: Basic dXNlcjpwYXNz' x", f"curl -H 'Authorization: {R}' x"),
    ("https://x.org/a?api_key=abc&city=Paris", f"https://x.org/a?api_key={R}&city=Paris"),
    ("password=hunter2; user=bob", f"password={R}; user=bob"),
    ("PASSWORD: 'a b c', next", f"PASSWORD: '{R}', next"),
    ('say {\\"password\\": \\"a b\\"} now', f'say {{\\"password\\": \\"{R}\\"}} now'),
    ("mysql -u root --password hunter2 db", f"mysql -u root --password {R} db"),
    ("postgres://user:hunter2@host/db", f"postgres://{R}@host/db"),
    ("Cookie: a=b; c=d\nHost: x", f"Cookie: {R}\nHost: x"),
    ("用户：小明，密码：一二三456。完", f"用户：小明，密码：{R}。完"),
    ("我的密码是hunter2，请登录", f"我的密码是{R}，请登录"),
    ("令牌=abc123 好", f"令牌={R} 好"),
    (f"use {KEY} now", f"use {R} now"),
    (f"a {JWT} b", f"a {R} b"),
    (f"x\n{PEM}\ny", f"x\n{R}\ny"),
    ("AKIAIOSFODNN7EXAMPLE", R),
    ("glpat-AbCdEf123456ghIJkl78", R),
    ("use hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567 here", f"use {R} here"),
    ("npm_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", R),
    ("pypi-AgEIcHlwaS5vcmcAbCdEfGhIjKlMn", R),
    ("sk_live_AbCdEfGhIjKlMnOpQrStUvWx", R),
    (
        "https://api.example.org/bot123456789:AAExampleTelegramTok_en123456789abcdE/send",
        f"https://api.example.org/{R}/send",
    ),
    # between letters of another script
    (f"请用{KEY}登录", f"请用{R}登录"),
    (f"前缀{JWT}后缀", f"前缀{R}后缀"),
    ("密匙AKIAIOSFODNN7EXAMPLE无效", f"密匙{R}无效"),
    ("请求头Bearer abcdefgh1234已失效", f"请求头Bearer {R}已失效"),
    # in sentences
    ("The password is EnglPw3344", f"The password is {R}"),
    ("(using password 'Quot pw')", f"(using password '{R}')"),
    ('the token was "Tok778899x"', f'the token was "{R}"'),
    # the names of the schemes in sentences, and before credentials
    *[
        (text, text)
        for text in (
            "A basic understanding of Basic authentication.",
            "BASIC INFORMATION, Basic read/write operations, well-known basic building-blocks",
            "Use Bearer authentication with the bearer certificate's owner",
        )
    ],
    ("Basic dXNlcjpwYXNz", f"Basic {R}"),
    ("Bearer abcdefghijklmnopqrstuvwxyzabcd", f"Bearer {R}"),
    ("bearer abcdefgh.ijklm", f"bearer {R}"),
    # JSON as text
    ('{"a": {"secret": "x"}, "名": "好"}', f'{{"a": {{"secret": "{R}"}}, "名": "好"}}'),
    ('[{"token":"x"}]', f'[{{"token": "{R}"}}]'),
    ('{"a":   1}',) * 2,
    # what only looks like it
    ("at 10:30 the author: bob said key=value",) * 2,
    ("SELECT max_tokens FROM models WHERE name = 'x'",) * 2,
    ("the password policy and a token ring",) * 2,
    ("the password is wrong, the token is expired",) * 2,
    ("password is at least 8 characters long",) * 2,
    ("a bot2 of hf_models and skills at sg.example.org",) * 2,
    ("https://example.org:8080/a@b?next_page_token=abc",) * 2,
    ("天气：晴；风力：3级",) * 2,
    (f"password={R}",) * 2,
]


@pytest.mark.parametrize(("given_value", "expected"), SHAPES)
def test_secrets_are_redacted_in_any_position(given_value, expected):
    assert redact(given_value) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it is s3/cr+t p here", f"it is {R} here"),
        ("s3/cr+t p", R),
        ("q=s3%2Fcr%2Bt%20p&x", f"q={R}&x"),
        ("q=s3%2fcr%2bt+p&x", f"q={R}&x"),
        (r"{\"q\": \"s3\/cr+t p\"}", rf"{{\"q\": \"{R}\"}}"),
        ("data:;base64,czMvY3IrdCBw", f"data:;base64,{R}"),
        ({"s3/cr+t p": ["s3/cr+t p", 7777]}, {R: [R, R]}),
        ("好的：密语一二三。", f"好的：{R}。"),
        ("abc ab", "abc ab"),
        ("ab", R),
        ({"n": 7777.5}, {"n": 7777.5}),
    ],
)
def test_known_secrets_are_redacted_everywhere(text, expected):
    assert redact(text, ["s3/cr+t p", "密语一二三", "ab", "7777", ""]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the latest tests of contest", "the latest tests of contest"),
        ("test, test. 'test' test_1", f"{R}, {R}. '{R}' {R}_1"),
        ("密码是test，请登录", f"密码是{R}，请登录"),
        ("q=Bearer%20test&x", f"q=Bearer%20{R}&x"),
        (r"a\ntest \u0020test", rf"a\n{R} \u0020{R}"),
        ("xtest-test-testx", f"x{R}x"),
    ],
)
def test_a_short_secret_is_redacted_as_a_whole_word(text, expected):
    assert redact_known_secrets(text, ["test", "test-test-test"]) == expected


@pytest.mark.parametrize(
    ("name", "reference", "value", "expected"),
    [
        ("Authorization", "MYVALUE", "x", True),
        ("X-Custom", "SHOP_API_KEY", "x", True),
        ("SMTP_PASS", "SMTP_PASS", "x", True),
        ("X-Functions-Key", "FUNCTIONS", "x", True),
        ("SLACK_WEBHOOK_URL", "HOOK", "https://hooks.example.org/T/B", True),
        ("DATABASE_URL", "DATABASE_URL", "postgres://ann:hunter2@db/shop", True),
        ("DATABASE_URL", "DATABASE_URL", "sqlite:///shop.db", False),
        ("X-Custom", "MYVALUE", "hunter2", False),
        ("HOME", "HOME", "/home/ann", False),
        ("AUTH_MODE", "AUTH_MODE", "none", False),
        ("username", "env:API_USER", "admin", False),
        ("PASSES", "COMPASS", "north", False),
    ],
)
def test_a_setting_is_secret_by_its_name_its_variable_or_the_form_of_its_value(name, reference, value, expected):
    assert is_secret_setting(name, reference, value) is expected


def test_the_longer_of_two_secrets_is_redacted_first():
    assert redact("x long-secret y", ["long", "long-secret"]) == f"x {R} y"


def test_redact_known_secrets_changes_nothing_else():
    assert redact_known_secrets("password=abc hunter2", ["hunter2"]) == f"password=abc {R}"


def test_the_original_value_is_not_changed():
    value = {"a": [{"password": "x"}]}
    assert redact(value) is not value
    assert value == {"a": [{"password": "x"}]}


def test_deeply_nested_values_are_redacted_entirely():
    value: object = "hunter2"
    for _ in range(5000):
        value = [value]
    assert "hunter2" not in repr(redact(value))
    assert "hunter2" not in str(redact("[" * 5000 + '"password=hunter2"' + "]" * 5000))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON, st.text(min_size=6))
def test_a_known_secret_is_never_in_the_result(value, secret):
    cleaned = redact([value, secret, {"k": f"{secret}", secret: None}], [secret])
    assert cleaned[1:] == [R, {"k": R, R: None}]


@given(JSON)
def test_redaction_never_raises_and_is_idempotent(value):
    once = redact({"password": value, "x": value})
    assert once["password"] in (R, None, True, False, "", [], {})
    assert redact(once) == once


@pytest.mark.parametrize("value", [given_value for given_value, expected in SHAPES if given_value != expected])
def test_may_hold_secrets_misses_nothing(value):
    assert may_hold_secrets(orjson.dumps(value))


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_may_hold_secrets_detects_every_secret_key(key):
    assert may_hold_secrets(orjson.dumps({key: "x"}))


@pytest.mark.parametrize("text", ["input_token", "OUTPUT_TOKEN", "total_token", "robot", "total_bots", "ghx_", "shpd_"])
def test_usage_and_words_like_prefixes_of_keys_are_no_secrets(text):
    assert not may_hold_secrets(orjson.dumps({text: 1}))
