import { Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ImportForm } from "./ImportForm";
import { JsonField } from "./JsonField";

const EXAMPLE_CONFIG =
  '{\n  "mcpServers": {\n    "notes": { "url": "https://notes.example.com/mcp" }\n  }\n}';

/** Add the MCP servers of a configuration. */
export function McpImport() {
  const { t } = useTranslation();
  const [config, setConfig] = useState(EXAMPLE_CONFIG);
  return (
    <ImportForm
      createBody={() => ({ config: JSON.parse(config) })}
      path="mcp"
      isChanged={config !== EXAMPLE_CONFIG}
    >
      <JsonField label={t("newTool.mcpConfig")} value={config} onChange={setConfig} minHeight="7rem" />
      <Text size="xs" c="dimmed">
        {t("newTool.mcpText")}
      </Text>
    </ImportForm>
  );
}
