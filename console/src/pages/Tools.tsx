import { Badge, Button, Group, Select, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconPlus, IconSearch, IconTool } from "@tabler/icons-react";
import { useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Skill, ToolHealth, ToolSpec } from "../api/client";
import { healthQuery, skillsQuery, toolsQuery, useScope } from "../api/queries";
import { ButtonLink, PageLink } from "../components/links";
import { Page } from "../components/Page";
import { Empty, QueryView } from "../components/States";
import { Status } from "../components/Status";
import { formatNumber } from "../format";

/** Return the state of a tool by its health: the tools of an MCP server may all wait until they are accepted. */
export function getHealthState({ tool_id, state, rejected = {} }: ToolHealth): string {
  const isInQuarantine = state === "away" && Object.keys(rejected).length > 0 && !(tool_id in rejected);
  return isInQuarantine ? "quarantine" : state;
}

/** Return whether each tool can be called: `away` is enabled but not loaded, `open` and `half_open` failed too often. */
function useToolStates(specs: ToolSpec[], actions: Actions | undefined): Map<string, string> {
  const states = new Map<string, string>();
  for (const spec of actions ? specs : []) {
    const state = actions?.get(spec.tool_id)?.[0]?.state ?? "away";
    states.set(spec.tool_id, spec.enabled === false ? "disabled" : state);
  }
  const servers = specs.filter(
    (spec) => spec.tool_type === "mcp_server" && states.get(spec.tool_id) === "away",
  );
  const health = useQueries({ queries: servers.map((spec) => healthQuery(spec.tool_id)) });
  for (const { data } of health) if (data) states.set(data.tool_id, getHealthState(data));
  return states;
}

/** The actions of each tool by its id. */
type Actions = Map<string, Skill[]>;
const CARDS = 60;

/** Return the actions of each tool: `a.b` is one of the tool `a`, or the only one of the tool `a.b`. */
export function groupActions(skills: Skill[]): Actions {
  const actions: Actions = new Map();
  for (const skill of skills) {
    const parts = skill.skill_id.split(".");
    for (let length = 1; length <= parts.length; length++) {
      const toolId = parts.slice(0, length).join(".");
      const group = actions.get(toolId);
      if (group) group.push(skill);
      else actions.set(toolId, [skill]);
    }
  }
  return actions;
}

export function ToolsPage() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { q = "", type = "", tag = "", state = "" } = useSearch({ strict: false });
  const canWrite = useScope("tools:write");
  const tools = useQuery(toolsQuery);
  const skills = useQuery(skillsQuery);
  const change = (values: Record<string, string | null>) =>
    navigate({ to: "/tools", search: (previous) => ({ ...previous, ...clean(values) }), replace: true });
  const search = useDebouncedCallback((text: string) => change({ q: text }), 150);
  const actions = useMemo(() => skills.data && groupActions(skills.data), [skills.data]);
  const states = useToolStates(tools.data?.items ?? [], actions);
  const [shown, setShown] = useState(CARDS);
  const tags = [...new Set((tools.data?.items ?? []).flatMap((spec) => spec.tags ?? []))].sort();
  return (
    <Page
      title={t("nav.tools")}
      description={t("tools.description")}
      actions={
        canWrite && (
          <ButtonLink to="/tools/new" size="xs" leftSection={<IconPlus size={15} />}>
            {t("tools.add")}
          </ButtonLink>
        )
      }
    >
      <Group mb="md" gap="xs">
        <TextInput
          flex="1 1 20rem"
          placeholder={t("tools.search")}
          aria-label={t("tools.search")}
          leftSection={<IconSearch size={15} />}
          defaultValue={q}
          onChange={(event) => search(event.currentTarget.value)}
        />
        <Select
          flex="1 1 6.5rem"
          maw={170}
          aria-label={t("tools.type")}
          placeholder={t("tools.type")}
          clearable
          data={["function", "http", "mcp_server", "skill"].map((value) => ({
            value,
            label: t(`toolType.${value}`),
          }))}
          value={type || null}
          onChange={(value) => change({ type: value })}
        />
        <Select
          flex="1 1 6.5rem"
          maw={170}
          aria-label={t("tools.state")}
          placeholder={t("tools.state")}
          clearable
          data={["ok", "open", "half_open", "disabled", "away", "quarantine"].map((value) => ({
            value,
            label: t(`status.${value}`),
          }))}
          value={state || null}
          onChange={(value) => change({ state: value })}
        />
        {tags.length > 0 && (
          <Select
            flex="1 1 6.5rem"
            maw={170}
            aria-label={t("tools.tag")}
            placeholder={t("tools.tag")}
            clearable
            data={tags}
            value={tag || null}
            onChange={(value) => change({ tag: value })}
          />
        )}
      </Group>
      <QueryView query={tools}>
        {({ items }) => {
          const found = items.filter(
            (spec) =>
              (!type || spec.tool_type === type) &&
              (!tag || spec.tags?.includes(tag)) &&
              (!state || states.get(spec.tool_id) === state) &&
              matches(spec, actions?.get(spec.tool_id) ?? [], q),
          );
          if (found.length === 0)
            return <Empty icon={<IconTool size={32} stroke={1.3} />} title={t("nothingFound")} />;
          return (
            <Stack align="flex-start">
              <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm" w="100%">
                {found.slice(0, shown).map((spec) => (
                  <ToolCard
                    key={spec.tool_id}
                    spec={spec}
                    actions={actions?.get(spec.tool_id) ?? []}
                    state={states.get(spec.tool_id)}
                  />
                ))}
              </SimpleGrid>
              {found.length > shown && (
                <Button variant="default" size="xs" onClick={() => setShown(shown + CARDS)}>
                  {t("more")} ({formatNumber(found.length - shown)})
                </Button>
              )}
            </Stack>
          );
        }}
      </QueryView>
    </Page>
  );
}

type CardProps = { spec: ToolSpec; actions: Skill[]; state: string | undefined };

function ToolCard({ spec, actions, state }: CardProps) {
  const { t } = useTranslation();
  const description = spec.description || actions[0]?.description || "";
  return (
    <PageLink
      to="/tools/$toolId"
      params={{ toolId: spec.tool_id }}
      underline="never"
      c="inherit"
      className="card"
    >
      <Stack gap={6} h="100%">
        <Group justify="space-between" wrap="nowrap" gap="xs">
          <Text fw={600} ff="monospace" size="sm" className="truncate">
            {spec.tool_id}
          </Text>
          {state && <Status value={state} />}
        </Group>
        <Text size="sm" c="dimmed" lineClamp={2} flex={1}>
          {description}
        </Text>
        <Group gap={6}>
          <Badge size="sm" variant="default">
            {t(`toolType.${spec.tool_type}`)}
          </Badge>
          {actions.length > 1 && (
            <Badge size="sm" variant="default">
              {t("tools.actions", { count: actions.length })}
            </Badge>
          )}
          {spec.needs_approval && (
            <Badge size="sm" variant="default">
              {t("tools.needsApproval")}
            </Badge>
          )}
        </Group>
      </Stack>
    </PageLink>
  );
}

function matches(spec: ToolSpec, actions: Skill[], text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const searched = [
    spec.tool_id,
    spec.description,
    ...(spec.tags ?? []),
    ...actions.flatMap((action) => [action.name, action.description]),
  ]
    .join(" ")
    .toLowerCase();
  return words.every((word) => searched.includes(word));
}

/** Return search parameters without those that are empty. */
export function clean(values: Record<string, string | null>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value || undefined]));
}
