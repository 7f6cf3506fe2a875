"""Content of a web page: links, and elements with unique CSS selectors."""

from difflib import SequenceMatcher
from typing import Any

from opposable.domain.text_normalization import normalize_text

_MAX_ITEMS = 400
_LIST_ELEMENTS_SCRIPT = """
(most) => {
  const unique = (s) => { try { return document.querySelectorAll(s).length === 1 } catch { return false } };
  const quoted = (v) => '"' + v.replace(/["\\\\]/g, "\\\\$&") + '"';
  const selector = (e) => {
    const tag = e.tagName.toLowerCase();
    if (e.id && unique("#" + CSS.escape(e.id))) return "#" + CSS.escape(e.id);
    for (const name of ["data-testid", "name", "aria-label", "placeholder", "href", "value"]) {
      const value = e.getAttribute(name);
      const s = value && value.length < 120 ? tag + "[" + name + "=" + quoted(value) + "]" : "";
      if (s && unique(s)) return s;
    }
    for (const c of e.classList) { const s = tag + "." + CSS.escape(c); if (unique(s)) return s; }
    if (unique(tag)) return tag;
    const steps = [];
    for (let n = e; n && n !== document.documentElement; n = n.parentElement) {
      if (n.id && unique("#" + CSS.escape(n.id))) { steps.unshift("#" + CSS.escape(n.id)); break; }
      const same = n.parentElement ? [...n.parentElement.children].filter((o) => o.tagName === n.tagName) : [n];
      const at = same.length > 1 ? ":nth-of-type(" + (same.indexOf(n) + 1) + ")" : "";
      steps.unshift(n.tagName.toLowerCase() + at);
    }
    return steps.join(" > ");
  };
  const wanted = "a, button, input, select, textarea, summary, label, [role], [onclick], [contenteditable], h1, h2, h3, [id], [class]";
  const acting = "a, button, input, select, textarea, summary, [role=button], [role=link], [onclick], [contenteditable]";
  const found = [];
  for (const e of document.querySelectorAll(wanted)) {
    if (found.length >= most) break;
    if (!e.getClientRects().length) continue;
    const acts = e.matches(acting);
    const text = (e.innerText || e.value || e.getAttribute("aria-label") || e.placeholder || "").trim().replace(/\\s+/g, " ");
    found.push({
      selector: selector(e), tag: e.tagName.toLowerCase(), text: text.slice(0, 80), acts,
      words: [e.tagName, e.id, e.className, e.name, e.type, e.getAttribute("href")].filter((w) => typeof w === "string").join(" ").slice(0, 300),
    });
  }
  return found;
}
"""
_LIST_LINKS_SCRIPT = """
(most) => [...document.querySelectorAll("a[href]")].slice(0, most)
  .map((a) => ({text: a.innerText.trim().replace(/\\s+/g, " ").slice(0, 120), url: a.href}))
"""


async def list_elements(page: Any) -> list[dict[str, Any]]:
    """Return elements that can be clicked or typed into: unique `selector`, `tag` and `text`."""
    elements = await page.evaluate(_LIST_ELEMENTS_SCRIPT, _MAX_ITEMS)
    return [
        {key: element[key] for key in ("selector", "tag", "text") if element[key]}
        for element in elements
        if element["acts"]
    ]


async def list_links(page: Any) -> list[dict[str, str]]:
    """Return the links of a page: `text` and absolute `url`."""
    links: list[dict[str, str]] = await page.evaluate(_LIST_LINKS_SCRIPT, _MAX_ITEMS)
    return links


async def find_similar_selectors(page: Any, selector: str, limit: int = 5) -> list[str]:
    """Return selectors of the page that resemble one without a match, each with the element's text."""
    elements = await page.evaluate(_LIST_ELEMENTS_SCRIPT, _MAX_ITEMS)
    selector_words = _split_words(selector)

    def score(element: dict[str, Any]) -> float:
        element_words = _split_words(f"{element['words']} {element['text']} {element['selector']}")
        best_ratios = [
            max((SequenceMatcher(None, word, other).ratio() for other in element_words), default=0.0)
            for word in selector_words
        ]
        return sum(best_ratios) / max(len(best_ratios), 1) + (0.15 if element["acts"] else 0.0)

    ranked = sorted(elements, key=score, reverse=True)
    similar = [element for element in ranked if score(element) > 0.5]
    similar = similar or [element for element in ranked if element["acts"]]
    return [
        f"{element['selector']} ({element['text'][:40]})" if element["text"] else element["selector"]
        for element in similar[:limit]
    ]


def _split_words(text: str) -> list[str]:
    return list(dict.fromkeys(normalize_text(text).split()))
