import { Badge, Button, Group, SegmentedControl, Stack, Text, useMantineColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { sessionQuery } from "../../api/queries";
import { LANGUAGES, type LanguageCode, setLanguage } from "../../i18n";
import { QueryView } from "../States";
import { useTour } from "../Tour";

/** Language, colors, the session and the models. */
export function GeneralSettings() {
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
