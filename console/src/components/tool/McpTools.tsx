import { Accordion, Alert, Badge, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { IconPlugConnected } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { api, type Page, type Pin, type ToolHealth } from "../../api/client";
import { useScope } from "../../api/queries";
import { formatTime } from "../../format";
import { ActionButton } from "../ActionButton";
import { CodeText } from "../CodeText";
import { Json } from "../Json";
import { Empty, ErrorAlert, QueryView } from "../States";

const COLORS = { accepted: "teal", new: "orange", changed: "red" } as const;
const ORDER = ["changed", "new", "accepted"];

/** The tools of an MCP server: accepted ones, and those in quarantine until a person accepts them. */
export function McpTools({ path, health }: { path: string; health?: ToolHealth }) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ["pins", path],
    queryFn: () => api<Page<Pin>>(`${path}/pins`),
    refetchInterval: 10_000,
  });
  // The list below shows which tools wait until they are accepted.
  const waiting = query.data?.items.filter((pin) => pin.pending).map((pin) => pin.tool) ?? [];
  const reasons = Object.entries(health?.rejected ?? {}).filter(
    ([name]) => query.data && !waiting.includes(name),
  );
  return (
    <Stack>
      <Text size="sm" c="dimmed" maw={720}>
        <CodeText>{t("mcp.text")}</CodeText>
      </Text>
      {reasons.length > 0 && (
        <Alert color="orange" variant="light" title={t("mcp.rejected")}>
          {reasons.map(([name, reason]) => (
            <Text key={name} size="sm" style={{ overflowWrap: "anywhere" }}>
              <b>{name}</b>: {reason}
            </Text>
          ))}
        </Alert>
      )}
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconPlugConnected size={32} stroke={1.3} />} title={t("mcp.none")}>
              {t("mcp.noneText")}
            </Empty>
          ) : (
            <Accordion multiple variant="separated" chevronSize={14}>
              {items
                .toSorted((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status))
                .map((pin) => (
                  <PinItem key={pin.tool} pin={pin} path={path} />
                ))}
            </Accordion>
          )
        }
      </QueryView>
    </Stack>
  );
}

function PinItem({ pin, path }: { pin: Pin; path: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const canAccept = useScope("tools:write");
  const accept = useMutation({
    mutationFn: () =>
      api(`${path}/pins`, { method: "POST", body: { tool: pin.tool, sha256: pin.pending_sha256 } }),
    onSettled: () =>
      Promise.all(["pins", "tools", "skills"].map((key) => client.invalidateQueries({ queryKey: [key] }))),
  });
  const shown = pin.pending ?? pin.definition;
  return (
    <Accordion.Item value={pin.tool}>
      <Accordion.Control>
        <Group gap="xs" wrap="nowrap">
          <Text size="sm" ff="monospace" fw={600} style={{ whiteSpace: "nowrap" }}>
            {pin.tool}
          </Text>
          <Badge size="sm" variant="light" color={COLORS[pin.status]} miw="max-content">
            {t(`mcp.status.${pin.status}`)}
          </Badge>
          <Text size="xs" c="dimmed" className="truncate" flex={1}>
            {String(shown.description ?? "")}
          </Text>
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack gap="sm">
          <SimpleGrid cols={{ base: 1, md: pin.status === "changed" ? 2 : 1 }}>
            {pin.status !== "new" && (
              <Definition
                title={t("mcp.acceptedAt", { time: formatTime(pin.pinned_at) })}
                value={pin.definition}
              />
            )}
            {pin.pending && <Definition title={t("mcp.pending")} value={pin.pending} />}
          </SimpleGrid>
          <ErrorAlert error={accept.error} />
          {pin.pending && canAccept && (
            <Group>
              <ActionButton size="xs" onClick={() => accept.mutate()} loading={accept.isPending}>
                {t("mcp.accept")}
              </ActionButton>
            </Group>
          )}
        </Stack>
      </Accordion.Panel>
    </Accordion.Item>
  );
}

function Definition({ title, value }: { title: string; value: Record<string, unknown> }) {
  return (
    <div>
      <Text size="xs" c="dimmed" mb={4}>
        {title}
      </Text>
      <Json value={value} label={title} />
    </div>
  );
}
