/** Return the nonce that the page's policy requires of style elements. */
export function getNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
}
