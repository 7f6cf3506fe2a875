"""Whatever a model writes, a parameter stays in its segment and the host stays the owner's."""

from urllib.parse import unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from opposable.domain.errors import InvalidArguments
from opposable.safety.network.url_parsing import parse_url
from opposable.tools.http.url_template import parse_url_template, percent_encode

WILD = st.one_of(
    st.text(),
    st.text(alphabet="./\\%2efF@:?#&=;{}[]\r\n\t\0 aA中"),
    st.sampled_from(
        ["..", "../x", "%2e%2e", "//evil.example", "@evil.example/", "\\\\evil", "a/../../b", ".", "", "{b}"]
    ),
)
TEMPLATE = parse_url_template("t", "https://api.example:8443/v1/{a}/x-{b}.json?q={q}&fixed=1")


@given(WILD, WILD, WILD)
def test_a_value_never_leaves_its_segment(a, b, q):
    try:
        url = TEMPLATE.fill({name: percent_encode(name, value) for name, value in (("a", a), ("b", b), ("q", q))})
    except InvalidArguments:
        return
    assert url.isascii()
    assert parse_url(url).origin == ("https", "api.example", 8443)
    assert str(parse_url(url).url) == url
    parts = urlsplit(url)
    segments = parts.path.split("/")
    assert [segments[0], segments[1]] == ["", "v1"]
    assert len(segments) == 4
    assert unquote(segments[2]) == a
    assert unquote(segments[3]) == f"x-{b}.json"
    assert parts.query.split("&")[1:] == ["fixed=1"]
    assert unquote(parts.query.split("&")[0]) == f"q={q}"
    assert (parts.fragment, segments[2] in (".", "..", "")) == ("", False)
    assert ".." not in a.replace("\\", "/").split("/")


@given(st.text(max_size=50))
def test_a_url_that_is_taken_reads_the_same_again(text):
    from opposable.domain.errors import ToolRefused

    for url in (f"http://{text}", f"https://{text}.example/", f"http://a.example/{text}", text):
        try:
            target = parse_url(url)
        except ToolRefused:
            continue
        assert parse_url(str(target.url)) == target
        assert urlsplit(str(target.url)).hostname == target.host
