import { Badge, Button, Group, Modal, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { IconPlus, IconRobot, IconUpload } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type Agent, api } from "../api/client";
import { agentsQuery, useScope } from "../api/queries";
import { ActionButton } from "../components/ActionButton";
import { PageLink } from "../components/links";
import { MutationForm } from "../components/MutationForm";
import { Page } from "../components/Page";
import { Empty, ErrorAlert, QueryView } from "../components/States";

export function AgentsPage() {
  const { t } = useTranslation();
  const query = useQuery(agentsQuery);
  const canWrite = useScope("tools:write");
  const [dialog, setDialog] = useState<"create" | "import" | null>(null);
  return (
    <Page
      title={t("nav.agents")}
      description={t("agents.description")}
      actions={
        canWrite && (
          <>
            <Button
              size="xs"
              variant="default"
              leftSection={<IconUpload size={15} />}
              onClick={() => setDialog("import")}
            >
              {t("agents.import")}
            </Button>
            <Button size="xs" leftSection={<IconPlus size={15} />} onClick={() => setDialog("create")}>
              {t("agents.create")}
            </Button>
          </>
        )
      }
    >
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconRobot size={32} stroke={1.3} />} title={t("agents.none")} />
          ) : (
            <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
              {items.map((item) => (
                <AgentCard key={item.agent.agent_id} item={item} />
              ))}
            </SimpleGrid>
          )
        }
      </QueryView>
      <CreateDialog isOpen={dialog === "create"} onClose={() => setDialog(null)} />
      <ImportDialog isOpen={dialog === "import"} onClose={() => setDialog(null)} />
    </Page>
  );
}

function AgentCard({ item: { agent, version } }: { item: Agent }) {
  const { t } = useTranslation();
  return (
    <PageLink
      to="/agents/$agentId"
      params={{ agentId: agent.agent_id }}
      underline="never"
      c="inherit"
      className="card"
    >
      <Stack gap={6} h="100%">
        <Group justify="space-between" wrap="nowrap" gap="xs">
          <Text fw={600} size="sm" className="truncate">
            {agent.name || agent.agent_id}
          </Text>
          <Text size="xs" c="dimmed">
            v{version}
          </Text>
        </Group>
        <Text size="sm" c="dimmed" lineClamp={2} flex={1}>
          {agent.description || agent.instructions || agent.agent_id}
        </Text>
        <Group gap={6}>
          <Badge size="sm" variant="default">
            {t("agents.toolCount", { count: agent.tools?.length ?? 0 })}
          </Badge>
          {agent.model && (
            <Badge size="sm" variant="default">
              {agent.model}
            </Badge>
          )}
          {agent.database && (
            <Badge size="sm" variant="default">
              {t("data.database")}
            </Badge>
          )}
        </Group>
      </Stack>
    </PageLink>
  );
}

type DialogProps = { isOpen: boolean; onClose: () => void };

function CreateDialog({ isOpen, onClose }: DialogProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [id, setId] = useState("");
  const create = useMutation({
    mutationFn: () => api("/api/agents", { method: "POST", body: { agent_id: id.trim() } }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: agentsQuery.queryKey });
      await navigate({ to: "/agents/$agentId", params: { agentId: id.trim() } });
    },
  });
  return (
    <Modal opened={isOpen} onClose={onClose} title={t("agents.create")}>
      <MutationForm mutation={create} action={t("agents.create")} isIncomplete={!id.trim()}>
        <TextInput
          label={t("agents.id")}
          description={t("idText")}
          value={id}
          onChange={(event) => setId(event.currentTarget.value)}
          data-autofocus
        />
      </MutationForm>
    </Modal>
  );
}

function ImportDialog({ isOpen, onClose }: DialogProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [yaml, setYaml] = useState("");
  const load = useMutation({
    mutationFn: () =>
      api("/api/agents/import", { method: "POST", text: { content: yaml, type: "application/yaml" } }),
    onSuccess: () => {
      client.invalidateQueries({ queryKey: agentsQuery.queryKey });
      onClose();
    },
  });
  return (
    <Modal opened={isOpen} onClose={onClose} title={t("agents.import")} size="lg">
      <Stack>
        <Textarea
          label="YAML"
          minRows={10}
          autosize
          ff="monospace"
          value={yaml}
          onChange={(event) => setYaml(event.currentTarget.value)}
          placeholder={"agent_id: clerk\nname: Clerk"}
        />
        <ErrorAlert error={load.error} />
        <ActionButton onClick={() => load.mutate()} loading={load.isPending} disabled={!yaml.trim()}>
          {t("agents.import")}
        </ActionButton>
      </Stack>
    </Modal>
  );
}
