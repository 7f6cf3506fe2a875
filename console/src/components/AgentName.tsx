import { useAgentOptions } from "../api/queries";

/** The name of an agent, and its id where the key may not list agents or the agent is deleted. */
export function AgentName({ id }: { id: string }) {
  return useAgentOptions().find(({ value }) => value === id)?.label ?? id;
}
