import { Stack } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { api, type Page as ListPage, type ToolSpec, type ToolVersion } from "../../api/client";
import { skillsQuery, toolsQuery, useScope } from "../../api/queries";
import { Empty, ErrorAlert, QueryView } from "../States";
import { Versions } from "../Versions";

/** The versions of a tool, which can be compared and restored. */
export function ToolVersions({ spec, path }: { spec: ToolSpec; path: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ["tools", spec.tool_id, "versions"],
    queryFn: () => api<ListPage<ToolVersion>>(`${path}/versions`),
  });
  const canWrite = useScope("tools:write");
  const restore = useMutation({
    mutationFn: (earlier: ToolSpec) =>
      api(path, { method: "PUT", body: { ...earlier, enabled: spec.enabled } }),
    onSuccess: () =>
      Promise.all([client.invalidateQueries(toolsQuery), client.invalidateQueries(skillsQuery)]),
  });
  return (
    <QueryView query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title={t("tool.noVersions")}>{t("tool.noVersionsText")}</Empty>
        ) : (
          <Stack>
            <ErrorAlert error={restore.error} />
            <Versions
              versions={items.map(({ tool, version, saved_by, created_at }) => ({
                version,
                spec: tool,
                time: created_at,
                author: saved_by,
              }))}
              label={t("tool.restore")}
              describeAction={(version) => t("tool.restoreVersion", { version })}
              onSelect={canWrite ? restore.mutate : undefined}
              isBusy={restore.isPending}
            />
          </Stack>
        )
      }
    </QueryView>
  );
}
