import { Stack } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { FormEvent, ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { api, type ImportOutcome } from "../../api/client";
import { ActionButton } from "../ActionButton";
import { UnsavedChanges } from "../Confirm";
import { ErrorAlert } from "../States";
import { ImportedTools } from "./ImportedTools";
import { useShowTools } from "./useShowTools";

/** A form whose content the server imports as tools; what was left out is shown. */
export function ImportForm({
  createBody,
  path,
  isChanged,
  isIncomplete = false,
  children,
}: {
  createBody: () => object;
  path: string;
  isChanged: boolean;
  isIncomplete?: boolean;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  const show = useShowTools();
  const load = useMutation({
    mutationFn: async () =>
      api<ImportOutcome>(`/api/tools/import/${path}`, { method: "POST", body: createBody() }),
    onSuccess: async ({ accepted, left_out }) => {
      if (left_out.length === 0) await show(accepted.length === 1 ? accepted[0]?.tool_id : "");
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    load.mutate();
  };
  return (
    <Stack maw={820} component="form" onSubmit={submit}>
      <UnsavedChanges isChanged={isChanged && !load.isPending && !load.isSuccess} />
      {children}
      <ErrorAlert error={load.error} />
      <ActionButton type="submit" loading={load.isPending} disabled={isIncomplete} w="fit-content">
        {t("tools.add")}
      </ActionButton>
      {load.data && <ImportedTools outcome={load.data} />}
    </Stack>
  );
}
