import { Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { CodeEditor } from "../lazy";
import { ImportForm } from "./ImportForm";
import { Labelled } from "./Labelled";

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
      <Labelled text={t("newTool.mcpConfig")}>
        <CodeEditor
          language="json"
          label={t("newTool.mcpConfig")}
          value={config}
          onChange={setConfig}
          minHeight="7rem"
        />
      </Labelled>
      <Text size="xs" c="dimmed">
        {t("newTool.mcpText")}
      </Text>
    </ImportForm>
  );
}
