import { Badge, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { IconPlayerPlay } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type CallResult, type Skill } from "../../api/client";
import { toMedia } from "../../api/media";
import { healthQuery } from "../../api/queries";
import { formatSeconds } from "../../format";
import { Json } from "../Json";
import { SchemaForm } from "../lazy";
import { Media } from "../Media";
import { Empty, ErrorAlert } from "../States";

/** Call a tool with the arguments of a form, and see its result. */
export function ToolTrial({ skill, toolId }: { skill: Skill; toolId: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [values, setValues] = useState<Record<string, unknown>>({});
  const call = useMutation({
    mutationFn: () =>
      api<CallResult>(`/skills/${encodeURIComponent(skill.skill_id)}/run`, {
        method: "POST",
        body: { arguments: values },
      }),
    onSuccess: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: ["executions"] }),
        client.invalidateQueries(healthQuery(toolId)),
      ]),
  });
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      <section aria-label={t("call.arguments")}>
        <SchemaForm
          schema={skill.parameters}
          value={values}
          onChange={setValues}
          onSubmit={() => call.mutate()}
          submitLabel={t("tool.run")}
          isBusy={call.isPending}
        />
      </section>
      <Stack gap="xs" aria-live="polite">
        <ErrorAlert error={call.error} />
        {call.data ? (
          <>
            <Group gap="xs">
              <Badge color={call.data.success ? "teal" : "red"} variant="light">
                {call.data.success
                  ? t("call.succeeded")
                  : t(`failure.${call.data.error?.kind}`, call.data.error?.kind ?? "")}
              </Badge>
              <Text size="xs" c="dimmed">
                {formatSeconds(call.data.meta.latency_ms / 1000)}
                {call.data.meta.attempts > 1 &&
                  ` · ${t("tool.attempts", { count: call.data.meta.attempts })}`}
                {call.data.meta.cached && ` · ${t("call.cached")}`}
              </Text>
            </Group>
            {call.data.media && <Media parts={toMedia(call.data.media)} />}
            <Json value={call.data.content} label={t("call.result")} />
            {call.data.meta.cut > 0 && (
              <Text size="xs" c="dimmed">
                {t("call.cut", { count: call.data.meta.cut })}
              </Text>
            )}
          </>
        ) : (
          !call.error && (
            <Empty icon={<IconPlayerPlay size={28} stroke={1.3} />} title={t("tool.tryTitle")}>
              {t("tool.tryText")}
            </Empty>
          )
        )}
      </Stack>
    </SimpleGrid>
  );
}
