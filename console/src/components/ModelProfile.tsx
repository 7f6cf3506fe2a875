import { Badge, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { sessionQuery } from "../api/queries";
import { formatNumber } from "../format";
import { CodeText } from "./CodeText";

/** How a model is used: its calling mode, assistance, images and context. "" is the default model. */
export function ModelProfile({ model }: { model: string }) {
  const { t } = useTranslation();
  const session = useQuery(sessionQuery).data;
  const name = model || session?.models[0] || "";
  const profile = session?.profiles[name];
  if (!profile) return null;
  const facts = [
    `${t("model.calling")}: ${t(`model.mode.${profile.calling}`)}`,
    `${t("model.assistance")}: ${t(profile.assisted ? "model.on" : "model.off")}`,
    `${t("model.images")}: ${t(profile.images ? "yes" : "no")}`,
    ...(profile.context ? [`${t("model.context")}: ${formatNumber(profile.context)}`] : []),
  ];
  return (
    <Group gap={6} role="group" aria-label={t("model.profile")}>
      {facts.map((fact) => (
        <Badge key={fact} size="sm" variant="default" fw={500}>
          {fact}
        </Badge>
      ))}
      <Text size="xs" c="dimmed">
        <CodeText>{t("model.check")}</CodeText>
      </Text>
    </Group>
  );
}
