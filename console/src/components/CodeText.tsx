import { Code } from "@mantine/core";

/** A text of the catalog, with what stands between backticks as code. */
export function CodeText({ children }: { children: string }) {
  return children
    .split("`")
    .map((part, index) => (index % 2 ? <Code key={index}>{part}</Code> : <span key={index}>{part}</span>));
}
