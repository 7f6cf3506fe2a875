import {
  Alert,
  Badge,
  Button,
  Checkbox,
  Code,
  CopyButton,
  Group,
  Modal,
  NumberInput,
  type NumberInputProps,
  Paper,
  SegmentedControl,
  Stack,
  Tabs,
  Text,
  TextInput,
  useMantineColorScheme,
} from "@mantine/core";
import { IconKey, IconPlus } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiKey, api, type Usage, withQuery } from "../api/client";
import { keysQuery, sessionQuery, useScope } from "../api/queries";
import { ConfirmButton } from "../components/Confirm";
import { Page } from "../components/Page";
import { RecordTable } from "../components/RecordTable";
import { Empty, ErrorAlert, Forbidden, QueryView } from "../components/States";
import { PeriodSelect, usePeriod } from "../components/StatisticsCharts";
import { TabList } from "../components/TabList";
import { useTour } from "../components/Tour";
import { formatNumber, formatTime } from "../format";
import { LANGUAGES, type LanguageCode, setLanguage } from "../i18n";

const SCOPES = ["chat", "approve", "tools:read", "tools:write", "admin"];
const TABS = ["general", "keys", "usage", "service"] as const;

export function SettingsPage() {
  const { t } = useTranslation();
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const isAdmin = useScope("admin");
  const tab = TABS.find((name) => name === search.tab) ?? "general";
  const tabs = TABS.filter((name) => isAdmin || name === "general" || name === "service");
  return (
    <Page title={t("nav.settings")}>
      <Tabs
        value={tab}
        onChange={(value) => navigate({ to: "/settings", search: { tab: value ?? undefined } })}
        keepMounted={false}
      >
        <TabList selected={tab}>
          {tabs.map((name) => (
            <Tabs.Tab key={name} value={name} data-tab={name}>
              {t(`settings.${name}`)}
            </Tabs.Tab>
          ))}
        </TabList>
        <Tabs.Panel value="general">
          <General />
        </Tabs.Panel>
        <Tabs.Panel value="keys">{isAdmin ? <Keys /> : <Forbidden scope="admin" />}</Tabs.Panel>
        <Tabs.Panel value="usage">{isAdmin ? <UsageTable /> : <Forbidden scope="admin" />}</Tabs.Panel>
        <Tabs.Panel value="service">
          <ServiceState />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function General() {
  const { t, i18n } = useTranslation();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const session = useQuery(sessionQuery);
  const tour = useTour();
  return (
    <Stack maw={640}>
      <Field label={t("settings.language")}>
        <SegmentedControl
          aria-label={t("settings.language")}
          value={i18n.language}
          onChange={(value) => setLanguage(value as LanguageCode, true)}
          data={Object.entries(LANGUAGES).map(([value, label]) => ({ value, label }))}
        />
      </Field>
      <Field label={t("settings.colors")}>
        <SegmentedControl
          aria-label={t("settings.colors")}
          value={colorScheme}
          onChange={(value) => setColorScheme(value as "light" | "dark" | "auto")}
          data={(["auto", "light", "dark"] as const).map((value) => ({
            value,
            label: t(`settings.color.${value}`),
          }))}
        />
      </Field>
      <QueryView query={session}>
        {(data) => (
          <>
            <Field label={t("settings.signedIn")}>
              <Group gap={6}>
                <Text size="sm">{data.name}</Text>
                {data.scopes.map((scope) => (
                  <Badge key={scope} size="sm" variant="default">
                    {scope}
                  </Badge>
                ))}
              </Group>
            </Field>
            <Field label={t("settings.models")}>
              <Group gap={6}>
                {data.models.map((model, index) => (
                  <Badge key={model} variant={index === 0 ? "light" : "default"}>
                    {model}
                    {index === 0 && ` · ${t("settings.default")}`}
                  </Badge>
                ))}
              </Group>
            </Field>
            <Field label={t("settings.version")}>
              <Text size="sm">{data.version}</Text>
            </Field>
          </>
        )}
      </QueryView>
      {tour.steps.length > 0 && (
        <Field label={t("tour.title")}>
          <Button size="xs" variant="default" onClick={tour.start}>
            {t("settings.tour")}
          </Button>
        </Field>
      )}
    </Stack>
  );
}

function Field({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <Group justify="space-between" py={6} style={{ borderBottom: "1px solid var(--line)" }}>
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      {children}
    </Group>
  );
}

function Keys() {
  const { t } = useTranslation();
  const query = useQuery(keysQuery);
  const hasKey = useQuery(sessionQuery).data?.has_key ?? true;
  const [isCreating, setCreating] = useState(false);
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" maw={560}>
          {t("settings.keysText")}
        </Text>
        <Button size="xs" leftSection={<IconPlus size={15} />} onClick={() => setCreating(true)}>
          {t("settings.createKey")}
        </Button>
      </Group>
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconKey size={32} stroke={1.3} />} title={t("settings.noKeys")}>
              {!hasKey && t("settings.noKeysText")}
            </Empty>
          ) : (
            <KeyTable keys={items} />
          )
        }
      </QueryView>
      {isCreating && <CreateKey onClose={() => setCreating(false)} />}
    </Stack>
  );
}

function KeyTable({ keys }: { keys: ApiKey[] }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const revoke = async (id: string) => {
    await api(`/api/keys/${id}`, { method: "DELETE" });
    await client.invalidateQueries({ queryKey: keysQuery.queryKey });
  };
  return (
    <RecordTable
      items={keys}
      getKey={({ key_id }) => key_id}
      columns={[
        {
          label: t("settings.keyName"),
          cell: (key) => (
            <>
              <Text size="sm">{key.name}</Text>
              <Text size="xs" c="dimmed" ff="monospace">
                {key.prefix}…
              </Text>
            </>
          ),
          kind: "wide",
        },
        { label: t("settings.scopes"), cell: (key) => key.scopes.join(", ") },
        {
          label: t("settings.tokensUsed"),
          cell: (key) =>
            formatNumber(key.tokens_used) +
            (key.token_budget === null ? "" : ` / ${formatNumber(key.token_budget)}`),
          kind: "number",
        },
        {
          label: t("settings.rateLimit"),
          cell: ({ rate_limit }) => (rate_limit ? t("settings.perSeconds", rate_limit) : "–"),
          kind: "number",
        },
        { label: t("settings.lastUsed"), cell: (key) => formatTime(key.last_used_at) || "–", kind: "time" },
        {
          label: t("actions"),
          cell: (key) =>
            key.revoked_at ? (
              <Text size="xs" c="dimmed">
                {t("settings.revoked")}
              </Text>
            ) : (
              <ConfirmButton
                size="compact-xs"
                variant="light"
                color="red"
                aria-label={`${t("settings.revoke")} ${key.name}`}
                label={t("settings.revoke")}
                title={t("settings.revokeTitle", { name: key.name })}
                text={t("settings.revokeText")}
                action={() => revoke(key.key_id)}
              />
            ),
        },
      ]}
    />
  );
}

/** The requests, tokens and cost of each key and model. */
function UsageTable() {
  const { t } = useTranslation();
  const { days } = usePeriod();
  const query = useQuery({
    queryKey: ["usage", days],
    queryFn: () => {
      const since = new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
      return api<Usage>(withQuery("/api/usage", { since }));
    },
    refetchInterval: 5_000,
  });
  return (
    <Stack>
      <PeriodSelect />
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={t("settings.noUsage")}>{t("settings.noUsageText")}</Empty>
          ) : (
            <RecordTable
              items={items}
              getKey={({ key_id, model }) => `${key_id} ${model}`}
              columns={[
                { label: t("chat.model"), cell: ({ model }) => model, kind: "wide" },
                { label: t("settings.key"), cell: ({ key_name, key_id }) => key_name || key_id || "–" },
                {
                  label: t("settings.requests"),
                  cell: ({ requests }) => formatNumber(requests),
                  kind: "number",
                },
                {
                  label: t("runs.inOut"),
                  cell: (row) => `${formatNumber(row.input_tokens)} / ${formatNumber(row.output_tokens)}`,
                  kind: "number",
                },
                {
                  label: t("settings.cachedTokens"),
                  cell: ({ cached_tokens }) => formatNumber(cached_tokens),
                  kind: "number",
                },
                { label: t("runs.cost"), cell: ({ cost }) => cost?.toFixed(4) ?? "–", kind: "number" },
              ]}
            />
          )
        }
      </QueryView>
    </Stack>
  );
}

function CreateKey({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const hasKey = useQuery(sessionQuery).data?.has_key ?? true;
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState(["chat"]);
  const [budget, setBudget] = useState<number | string>("");
  const [rate, setRate] = useState<number | string>("");
  const create = useMutation({
    mutationFn: () =>
      api<{ key: string }>("/api/keys", {
        method: "POST",
        body: {
          name: name.trim(),
          scopes,
          token_budget: budget === "" ? null : Number(budget),
          rate_limit: rate === "" ? null : { calls: Number(rate), seconds: 60 },
        },
      }),
    onSuccess: async ({ key }) => {
      // Without keys the console needs none; the first one is needed from now on.
      if (!hasKey) await api("/api/session", { method: "POST", headers: { Authorization: `Bearer ${key}` } });
      await client.invalidateQueries();
    },
  });
  return (
    <Modal
      opened
      onClose={onClose}
      title={t("settings.createKey")}
      closeOnClickOutside={!create.data}
      closeOnEscape={!create.data}
    >
      {create.data ? (
        <Stack>
          <Alert color="orange" variant="light">
            {t("settings.shownOnce")}
          </Alert>
          <Code block style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
            {create.data.key}
          </Code>
          <Group>
            <CopyButton value={create.data.key}>
              {({ copied, copy }) => <Button onClick={copy}>{copied ? t("copied") : t("copy")}</Button>}
            </CopyButton>
            <Button variant="default" onClick={onClose}>
              {t("close")}
            </Button>
          </Group>
        </Stack>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate();
          }}
        >
          <Stack>
            <TextInput
              label={t("settings.keyName")}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              data-autofocus
              maxLength={100}
            />
            <Checkbox.Group label={t("settings.scopes")} value={scopes} onChange={setScopes}>
              <Group mt={6}>
                {SCOPES.map((scope) => (
                  <Checkbox key={scope} value={scope} label={scope} />
                ))}
              </Group>
            </Checkbox.Group>
            <Group grow>
              <LimitInput label={t("settings.budget")} min={0} value={budget} onChange={setBudget} />
              <LimitInput label={t("settings.rate")} min={1} value={rate} onChange={setRate} />
            </Group>
            {!hasKey && (
              <Alert color="orange" variant="light">
                {t("settings.firstKey")}
              </Alert>
            )}
            <ErrorAlert error={create.error} />
            <Button
              type="submit"
              loading={create.isPending}
              disabled={!name.trim() || scopes.length === 0 || (!hasKey && !scopes.includes("admin"))}
            >
              {t("settings.createKey")}
            </Button>
          </Stack>
        </form>
      )}
    </Modal>
  );
}

function LimitInput(props: NumberInputProps) {
  const { t } = useTranslation();
  return <NumberInput placeholder={t("agents.noLimit")} allowDecimal={false} {...props} />;
}

function ServiceState() {
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
