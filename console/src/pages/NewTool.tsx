export function NewToolPage() {
  return null;
}
