import { Badge, Group, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { Skill } from "../../api/client";
import { Json } from "../Json";

/** A tool as the model sees it. */
export function ToolDescription({ skill }: { skill: Skill }) {
  const { t } = useTranslation();
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        {t("tool.descriptionText")}
      </Text>
      <Group gap="xs">
        <Text ff="monospace" fw={600}>
          {skill.name}
        </Text>
        <Badge size="sm" variant="default">
          {skill.version}
        </Badge>
      </Group>
      <Text size="sm" style={{ whiteSpace: "pre-wrap" }}>
        {skill.description}
      </Text>
      <Json value={skill.parameters} label={t("tool.schema")} />
    </Stack>
  );
}
