"""What is on a page, told so that a model can act on it: text, links, and elements with selectors that work."""

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
    """The elements that can be clicked or typed into: `selector` (unique), `tag`, `text`."""
    found = await page.evaluate(_LIST_ELEMENTS_SCRIPT, _MAX_ITEMS)
    return [{key: one[key] for key in ("selector", "tag", "text") if one[key]} for one in found if one["acts"]]


async def list_links(page: Any) -> list[dict[str, str]]:
    """The links of a page: `text` and absolute `url`."""
    found: list[dict[str, str]] = await page.evaluate(_LIST_LINKS_SCRIPT, _MAX_ITEMS)
    return found


async def find_similar_selectors(page: Any, selector: str, limit: int = 5) -> list[str]:
    """Selectors on the page that are most like one that found nothing, each with the element's text."""
    found = await page.evaluate(_LIST_ELEMENTS_SCRIPT, _MAX_ITEMS)
    wanted = _split_words(selector)

    def likeness(one: dict[str, Any]) -> float:
        has = _split_words(f"{one['words']} {one['text']} {one['selector']}")
        best = [max((SequenceMatcher(None, word, other).ratio() for other in has), default=0.0) for word in wanted]
        return sum(best) / max(len(best), 1) + (0.15 if one["acts"] else 0.0)

    ranked = sorted(found, key=likeness, reverse=True)
    near = [one for one in ranked if likeness(one) > 0.5] or [one for one in ranked if one["acts"]]
    return [f"{one['selector']} ({one['text'][:40]})" if one["text"] else one["selector"] for one in near[:limit]]


def _split_words(text: str) -> list[str]:
    return list(dict.fromkeys(normalize_text(text).split()))
