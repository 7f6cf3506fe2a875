export function ToolsPage() {
  return null;
}
