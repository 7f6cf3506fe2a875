export function ToolPage() {
  return null;
}
