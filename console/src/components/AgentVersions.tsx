import { Button, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type Agent, type AgentSpec, api, type Page } from "../api/client";
import { formatTime } from "../format";
import { QueryView } from "./States";

type Props = { path: string; current: number; onLoad: (spec: AgentSpec) => void };

/** The versions of an agent, newest first. An earlier one can be loaded into the editor. */
export function AgentVersions({ path, current, onLoad }: Props) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ["agents", path, "versions", current],
    queryFn: () => api<Page<Agent>>(`${path}/versions`),
  });
  return (
    <QueryView query={query}>
      {({ items }) => (
        <Table verticalSpacing={4}>
          <Table.Tbody>
            {items.map(({ agent, version, updated_at }) => (
              <Table.Tr key={version}>
                <Table.Td w={90}>v{version}</Table.Td>
                <Table.Td>
                  <Text size="sm" c="dimmed">
                    {formatTime(updated_at)}
                  </Text>
                </Table.Td>
                <Table.Td ta="right" h={34}>
                  {version !== current && (
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      onClick={() => onLoad(agent)}
                      aria-label={t("agents.loadVersion", { version })}
                    >
                      {t("agents.load")}
                    </Button>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </QueryView>
  );
}
