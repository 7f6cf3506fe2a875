import type { KeyboardEvent } from "react";

/** Return whether a key sends a text: Enter alone, but not the one that ends a composition of an input method. */
export function isSendKey({ key, shiftKey, keyCode, nativeEvent }: KeyboardEvent): boolean {
  // Safari reports the end of a composition first; the Enter after it has the key code 229.
  return key === "Enter" && !shiftKey && !nativeEvent.isComposing && keyCode !== 229;
}
