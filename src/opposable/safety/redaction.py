"""Redaction of secrets in stored and displayed values."""

import base64
import functools
import itertools
import json
import re
from collections.abc import Collection, Iterable
from typing import Any
from urllib.parse import quote, quote_plus

REDACTED = "[redacted]"
MAX_DEPTH = 100
"""Levels of nesting that are searched; deeper values are redacted entirely."""
MIN_SUBSTRING_CHARACTERS = 4
"""Length from which a known secret is searched inside texts; a shorter one must be the whole text."""
MAX_WORD_CHARACTERS = 12
"""Length up to which a known secret is not searched inside words: "test" is not redacted in "latest"."""
MAX_KEY_CHARACTERS = 100
"""Characters of a key that are examined."""
COOKIE_SAFE_CHARACTERS = "!#$%&'()*+-./:<=>?@[]^_`{|}~"
"""Characters that the value of a cookie has as they are."""

_KEY_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = re.compile(
    r"password|passwd|passphrase|passcode|pwd|secrets?|token|authorization|auth|credentials?|cookies?|jwt|signature|otp|cvv|"
    r"\w*(?:password|passwd|passphrase|passcode|secret|apikey|accesskey|privatekey|secretkey|sessionid|credentials?)|"
    r"(?:access|auth|refresh|bearer|session|api|id|client|csrf|xsrf|bot|user)token"
)
_SECRET_PAIRS = re.compile(
    r"(?:api|access|private|signing|encryption|account|subscription) keys?|(?:access|refresh|api) tokens|session id|pin code"
)
_HARMLESS_LAST_WORDS = re.compile(
    r"counts?|limits?|length|types?|names?|policy|expiry|expires|budget|usage|used|ttl|hint|min|max|enabled|required|index|"
    r"modes?|methods?|providers?|schemes?|realm|domain|host|port|users?|usernames?|email|path|file|dir|timeout|algorithm"
)
_SECRET_SETTING = re.compile(r"(?:^|[_\-.:])(?:keys?|pass|pat|pin|dsn|webhook(?:_url)?)\d*$", re.IGNORECASE)
_HARMLESS_TOKEN_QUALIFIERS = re.compile(
    r"next|page|continuation|continue|sync|eos|bos|pad|stop|start|end|max|min|unk|mask"
)
_CHINESE_SECRET_WORDS = re.compile("密码|口令|密钥|秘钥|私钥|令牌|凭证|凭据|授权码|验证码")
_CHINESE_PROSE_SECRET = re.compile(f"((?:{_CHINESE_SECRET_WORDS.pattern})(?:是|为)[ \t:：]*)[^\\s，。；、,;\"']+")
_ENGLISH_PROSE_SECRET = re.compile(
    r"""(\b(?:(?:pass(?:word|wd|phrase|code)|pwd|secret|token|(?:api|access)[ _-]?key)[ ](?:is|was)[ ]+)["']?)
        (?=[^\s"']*\d)(?=[^\s"']*[a-z])[^\s"']{6,}
      | (\b(?:pass(?:word|wd|phrase|code)|pwd|secret)[ ](?P<quote>["']))(?:(?!(?P=quote)).){4,}(?=(?P=quote))""",
    re.VERBOSE | re.IGNORECASE,
)
_KEY_LIKE_TEXT = re.compile(r"[\w.\-]{1,64}")
_KEY_FIELDS = ("name", "key", "header", "field")
_VALUE_FIELDS = ("value", "values", "content", "default")
_SEPARATOR = re.compile(r"""\\?["']?[ \t]{0,4}(?:=>|[:=：＝])[ \t]{0,4}""")
_VALUE = re.compile(
    r"""(?P<open>\\?["'])(?P<quoted>(?:(?!(?P=open))(?:\\.|[^\\]))*)(?P=open)
      | (?:(?:Bearer|Basic|Token|Digest)[ \t]+)?[^\s"'&;,，。；、}\])]+""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_COOKIE_HEADER = re.compile(r"(?im)\b((?:set-)?cookie[ \t]{0,4}[:：][ \t]{0,4})[^\r\n\"']+")
_COMMAND_LINE_FLAG = re.compile(r"(?P<flag>(?<!\S)--?(?P<key>[A-Za-z][\w\-]{1,63})[ \t]{1,4})[^\s\-]\S*")
_SECRET_SHAPES = re.compile(
    r"""-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
      | (?<![\w\-])(?:eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*|sk-[\w\-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}
                      |xox[abprs]-[\w\-]{10,}|A[KS]IA[0-9A-Z]{16}|AIza[\w\-]{30,}|glpat-[\w\-]{16,}|hf_[a-z0-9]{20,}
                      |npm_[a-z0-9]{30,}|pypi-[\w\-]{16,}|[rs]k_(?:live|test)_\w{10,}|dop_v1_\w{30,}
                      |shp(?:at|ca|ss|pa)_\w{20,}|SG\.[\w\-]{16,}\.[\w\-]{16,}|ya29\.[\w\-]{20,}
                      |bot\d{6,12}:[\w\-]{30,})
      | (?<=://)[^/\s@:"'<>]{0,200}:[^/\s@"'<>]{1,500}(?=@)
      | (?<=\bBearer[ ])(?!(?-i:[A-Za-z][a-z]{0,14})(?![\w~+/=\-]|\.\w))[\w.~+/=\-]{8,}  # no short word
      | (?<=\bBasic[ ])(?!(?-i:[A-Za-z][a-z/\-]{0,23}|[A-Z/\-]{1,24})(?![\w~+/=]|\.\w))[\w.~+/=\-]{8,}  # no word
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE | re.ASCII,  # letters of other scripts are never part of a key
)


_WORD_START = r"(?:(?<![a-zA-Z0-9])|(?<=%[0-9a-fA-F]{2})|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"
"""The start of a word, also after an escaped character of a URL or of JSON."""
_WORD_END = "(?![a-zA-Z0-9])"

_SECRET_HINTS = tuple(
    hint.encode()
    for hints in (
        "pass pwd secret auth credential cookie jwt signature otp cvv key session pin 密 口令 私钥 令牌 凭 授权码 验证码",
        "begin eyj sk- ghp_ gho_ ghu_ ghs_ ghr_ github_pat xox akia asia aiza :// bearer basic glpat- hf_ npm_ pypi-",
        "rk_ sk_ dop_v1_ shpa shpc shps shpp sg. ya29 \\u",
    )
    for hint in hints.split()
)
_SECRET_HINT_PATTERNS = (
    re.compile(rb"token(?<!input_token)(?<!output_token)(?<!total_token)"),
    re.compile(rb"bot\d"),
)
"""With `_SECRET_HINTS`, found in lower case in every JSON text that `redact` changes: words of secret keys, formats of
secrets, escaped letters. Each is searched by itself, since one pattern of all is eight times as slow."""


def may_hold_secrets(raw: bytes) -> bool:
    """Whether `redact` can change the value of a JSON text; false is certain."""
    lowered = raw.lower()
    return any(hint in lowered for hint in _SECRET_HINTS) or any(
        pattern.search(lowered) for pattern in _SECRET_HINT_PATTERNS
    )


def redact(value: Any, secrets: Collection[str] = ()) -> Any:
    """Return a copy of a JSON value with secrets replaced by `[redacted]`.

    Redacted are:

    - values of keys that name a secret (`password`, `X-Api-Key`, `accessToken`, `密码`), at any depth, in pairs, in
      `name`/`value` objects, after command-line flags and as `key=value` inside texts. Booleans and null stay.
    - passwords in URLs, bearer tokens, private keys and the known formats of API keys.
    - each of `secrets`, plain, percent-encoded, JSON-escaped or in base64: a short one as a whole word, others anywhere.
    """
    return _redact_value(value, _expand_secret_forms(secrets), 0)


def redact_known_secrets(text: str, secrets: Collection[str]) -> str:
    """Return `text` with each of `secrets` replaced, and nothing else changed."""
    return _replace_known_secrets(text, _expand_secret_forms(secrets))


def is_secret_key(key: str) -> bool:
    """Whether a key names a secret."""
    return _is_secret_key(key[:MAX_KEY_CHARACTERS])


def is_secret_setting(name: str, reference: str, value: str) -> bool:
    """Whether the value of a header or environment variable is a secret.

    It is one if the name of the setting or of the referenced variable names a secret, or if the value has the form of
    one. Names such as `MASTER_KEY`, `DB_PASS` and `GITHUB_PAT` count, in addition to those of `is_secret_key`.
    """
    is_named = any(is_secret_key(text) or _SECRET_SETTING.search(text) for text in (name, reference))
    return is_named or redact(value) != value


def get_encoded_forms(secret: str) -> set[str]:
    """Return a secret as it is, in base64, and as it is written in URLs, cookies and JSON."""
    base64_form = base64.b64encode(secret.encode()).decode()
    encoded = {quote(secret, safe=safe) for safe in ("", "/", COOKIE_SAFE_CHARACTERS)} | {quote_plus(secret)}
    encoded |= {re.sub("%..", lambda octet: octet[0].lower(), form) for form in encoded}
    escaped = {json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    escaped |= {form.replace("/", "\\/") for form in escaped}
    return {secret, base64_form, base64_form.rstrip("=")} | encoded | escaped


def to_secret_pattern(secret: str) -> str:
    """Return the regular expression of a known secret in a text. A short one matches whole words only."""
    pattern = re.escape(secret)
    if len(secret) >= MAX_WORD_CHARACTERS:
        return pattern
    start = _WORD_START if secret[0].isascii() and secret[0].isalnum() else ""
    end = _WORD_END if secret[-1].isascii() and secret[-1].isalnum() else ""
    return f"{start}{pattern}{end}"


@functools.lru_cache(maxsize=4096)
def _is_secret_key(key: str) -> bool:
    if _CHINESE_SECRET_WORDS.search(key):
        return True
    words = [word.lower() for word in _KEY_WORD.findall(key)]
    if not words or _HARMLESS_LAST_WORDS.fullmatch(words[-1]):
        return False
    if words[-1] == "token" and len(words) > 1 and _HARMLESS_TOKEN_QUALIFIERS.fullmatch(words[-2]):
        return False
    if any(_SECRET_WORDS.fullmatch(word) for word in words):
        return True
    return any(_SECRET_PAIRS.fullmatch(" ".join(pair)) for pair in itertools.pairwise(words))


def _expand_secret_forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the encodings of each secret, longest first."""
    forms: set[str] = set()
    for secret in filter(None, secrets):
        forms |= get_encoded_forms(secret) if len(secret) >= MIN_SUBSTRING_CHARACTERS else {secret}
    return tuple(sorted(forms, key=len, reverse=True))


def _redact_value(value: Any, secrets: tuple[str, ...], depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if depth > MAX_DEPTH:
        return REDACTED
    if isinstance(value, str):
        return _redact_text(value, secrets)
    if isinstance(value, dict):
        return _redact_object(value, secrets, depth)
    if isinstance(value, list | tuple):
        return _redact_list(value, secrets, depth)
    if isinstance(value, int | float):
        return REDACTED if str(value) in secrets else value
    return _redact_text(str(value), secrets)


def _redact_object(value: dict[Any, Any], secrets: tuple[str, ...], depth: int) -> dict[str, Any]:
    has_secret_name = any(isinstance(name := value.get(key), str) and is_secret_key(name) for key in _KEY_FIELDS)
    redacted_object: dict[str, Any] = {}
    for key, inner in value.items():
        is_secret = is_secret_key(str(key)) or (has_secret_name and key in _VALUE_FIELDS)
        redacted_object[_replace_known_secrets(str(key), secrets)] = (
            _mask_value(inner) if is_secret else _redact_value(inner, secrets, depth + 1)
        )
    return redacted_object


def _redact_list(value: list[Any] | tuple[Any, ...], secrets: tuple[str, ...], depth: int) -> list[Any]:
    redacted_list: list[Any] = []
    previous_key = ""
    for position, item in enumerate(value):
        is_pair_value = len(value) == 2 and position == 1
        is_secret = is_secret_key(previous_key) and (is_pair_value or previous_key.startswith("-"))
        redacted_list.append(_mask_value(item) if is_secret else _redact_value(item, secrets, depth + 1))
        previous_key = item if isinstance(item, str) and not is_secret and _KEY_LIKE_TEXT.fullmatch(item) else ""
    return redacted_list


def _mask_value(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) or value in ("", [], {}) else REDACTED


def _replace_known_secrets(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        if text == secret:
            return REDACTED
        if len(secret) >= MIN_SUBSTRING_CHARACTERS and secret in text:
            text = re.sub(to_secret_pattern(secret), REDACTED, text)
    return text


def _redact_text(text: str, secrets: tuple[str, ...]) -> str:
    text = _replace_known_secrets(text, secrets)
    if len(text) < 6:
        return text
    parsed = _parse_embedded_json(text)
    if parsed is not None:
        cleaned = _redact_value(parsed, secrets, 1)
        return text if cleaned == parsed else json.dumps(cleaned, ensure_ascii=False)
    text = _COOKIE_HEADER.sub(rf"\1{REDACTED}", text)
    text = _CHINESE_PROSE_SECRET.sub(rf"\1{REDACTED}", text)
    text = _SECRET_SHAPES.sub(REDACTED, _redact_key_value_pairs(text))
    text = _ENGLISH_PROSE_SECRET.sub(_redact_prose_match, text)
    return _COMMAND_LINE_FLAG.sub(_redact_flag_match, text) if "-" in text else text


def _parse_embedded_json(text: str) -> Any:
    """Return the object or list that a text contains as JSON, or None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _redact_key_value_pairs(text: str) -> str:
    """Redact the value after each `key=` or `key: ` that names a secret."""
    parts: list[str] = []
    copied_to = 0
    for separator in _SEPARATOR.finditer(text):
        key = _find_key_before(text, separator.start())
        if separator.start() < copied_to or not key or not is_secret_key(key):
            continue
        value = _VALUE.match(text, separator.end())
        if value is None or text.startswith(REDACTED, separator.end()):
            continue
        inner = value["quoted"] if value["open"] else value[0]
        if inner.lower() in ("", "true", "false", "null", "none", REDACTED):
            continue
        quote_mark = value["open"] or ""
        parts += [text[copied_to : separator.end()], quote_mark, REDACTED, quote_mark]
        copied_to = value.end()
    return "".join([*parts, text[copied_to:]]) if parts else text


def _find_key_before(text: str, end: int) -> str:
    """Return the word that ends at `end`, with dots, dashes and underscores."""
    start = end
    while start > max(0, end - MAX_KEY_CHARACTERS) and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    return text[start:end]


def _redact_prose_match(match: re.Match[str]) -> str:
    return f"{match[1] or match[2]}{REDACTED}"


def _redact_flag_match(match: re.Match[str]) -> str:
    return f"{match['flag']}{REDACTED}" if is_secret_key(match["key"]) else match[0]
