import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

/** Refresh the lists of tools, and show a tool or the list. */
export function useShowTools() {
  const client = useQueryClient();
  const navigate = useNavigate();
  return async (toolId = "") => {
    await Promise.all([
      client.invalidateQueries({ queryKey: ["tools"] }),
      client.invalidateQueries({ queryKey: ["skills"] }),
    ]);
    await (toolId ? navigate({ to: "/tools/$toolId", params: { toolId } }) : navigate({ to: "/tools" }));
  };
}
