/** An event of a stream. `data` is the parsed JSON, or the text "[DONE]" at the end. */
export type SseEvent = { id: string; event: string; data: unknown };

/** Yield the server-sent events of a response body. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<SseEvent> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let buffer = "";
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      buffer += value.replaceAll("\r\n", "\n");
      for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
        const event = parseEvent(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Parse one event; null for a comment. */
export function parseEvent(block: string): SseEvent | null {
  const fields: Record<string, string> = {};
  for (const line of block.split("\n")) {
    if (!line || line.startsWith(":")) continue;
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    fields[name] = name === "data" && fields.data !== undefined ? `${fields.data}\n${value}` : value;
  }
  if (fields.data === undefined) return null;
  return { id: fields.id ?? "", event: fields.event ?? "", data: parseData(fields.data) };
}

function parseData(text: string): unknown {
  if (text === "[DONE]") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
