import { Fragment, type ReactNode } from "react";

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MAX_HIGHLIGHTED = 20_000;

/** A JSON value, or text that may be JSON, indented and coloured. Long values are shown without colours. */
export function Json({ value, label }: { value: unknown; label: string }) {
  const text = typeof value === "string" ? indent(value) : JSON.stringify(value, null, 2);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section className="code" aria-label={label} tabIndex={0}>
      {text === undefined ? "" : highlight(text)}
    </section>
  );
}

function indent(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function highlight(text: string): ReactNode {
  if (text.length > MAX_HIGHLIGHTED || !/^\s*[[{]/.test(text)) return text;
  const parts: ReactNode[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    parts.push(<Fragment key={end}>{text.slice(end, match.index)}</Fragment>);
    const kind = match[1] ? (match[2] ? "key" : "string") : "literal";
    const token = match[1] ?? match[0];
    parts.push(
      <span key={`t${match.index}`} className={kind}>
        {token}
      </span>,
    );
    end = match.index + token.length;
  }
  parts.push(text.slice(end));
  return parts;
}
