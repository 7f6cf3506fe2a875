import { Badge, Group, Paper, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { QueryView } from "../States";

/** Which parts of the service are ready. */
export function ServiceState() {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ["readiness"],
    // The response has the status 503 if a part is not ready; its body says which.
    queryFn: async () => {
      const response = await fetch("/readyz", { headers: { "X-Opposable-Console": "1" } });
      return (await response.json()) as { ready: boolean; parts: Record<string, string> };
    },
    refetchInterval: 10_000,
  });
  return (
    <QueryView query={query}>
      {({ parts }) => (
        <Stack maw={640} gap="xs">
          {Object.entries(parts).map(([name, state]) => (
            <Paper key={name} className="bordered" p="sm" bg="transparent">
              <Group justify="space-between">
                <Text size="sm">{t(`settings.part.${name}`, name)}</Text>
                <Badge variant="dot" color={state === "ok" ? "teal" : "red"} fw={500}>
                  {t(state === "ok" ? "status.ok" : "failure.unavailable")}
                </Badge>
              </Group>
              {state !== "ok" && (
                <Text size="xs" c="dimmed" mt={4} style={{ overflowWrap: "anywhere" }}>
                  {state}
                </Text>
              )}
            </Paper>
          ))}
        </Stack>
      )}
    </QueryView>
  );
}
