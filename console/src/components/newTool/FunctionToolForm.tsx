import { Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api } from "../../api/client";
import { ActionButton } from "../ActionButton";
import { UnsavedChanges } from "../Confirm";
import { ErrorAlert } from "../States";
import { useShowTools } from "./useShowTools";

/** The form of a tool that calls a Python function. */
export function FunctionToolForm() {
  const { t } = useTranslation();
  const show = useShowTools();
  const [id, setId] = useState("");
  const [modulePath, setModulePath] = useState("");
  const [className, setClassName] = useState("");
  const [functionName, setFunctionName] = useState("");
  const save = useMutation({
    mutationFn: () =>
      api("/api/tools", {
        method: "POST",
        body: {
          tool_type: "function",
          tool_id: id.trim(),
          module_path: modulePath,
          class_name: className,
          function_name: functionName,
        },
      }),
    onSuccess: () => show(id.trim()),
  });
  return (
    <Stack
      maw={560}
      component="form"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <UnsavedChanges isChanged={!save.isPending && id + modulePath + className + functionName !== ""} />
      <Text size="sm" c="dimmed">
        {t("newTool.functionText")}
      </Text>
      <TextInput
        label={t("newTool.id")}
        description={t("idText")}
        value={id}
        onChange={(event) => setId(event.currentTarget.value)}
      />
      <TextInput
        label={t("newTool.module")}
        placeholder="shop.tools"
        value={modulePath}
        onChange={(event) => setModulePath(event.currentTarget.value)}
      />
      <TextInput
        label={t("newTool.className")}
        value={className}
        onChange={(event) => setClassName(event.currentTarget.value)}
      />
      <TextInput
        label={t("newTool.functionName")}
        value={functionName}
        onChange={(event) => setFunctionName(event.currentTarget.value)}
      />
      <ErrorAlert error={save.error} />
      <ActionButton
        type="submit"
        w="fit-content"
        loading={save.isPending}
        disabled={!id.trim() || !modulePath.trim()}
      >
        {t("save")}
      </ActionButton>
    </Stack>
  );
}
