export function AgentPage() {
  return null;
}
