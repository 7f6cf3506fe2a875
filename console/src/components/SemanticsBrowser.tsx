import { Accordion, Alert, Badge, Code, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { api, type Semantics } from "../api/client";
import { type DataSource, getSourceHeaders } from "../api/queries";
import { QueryView } from "./States";

const COLORS = { error: "red", warning: "orange", info: "gray" } as const;
const SECTIONS = ["metrics", "dimensions", "filters", "exclusions"] as const;

/** The terms of a semantic model by section, and the problems that its check found. */
export function SemanticsBrowser({ source }: { source: DataSource }) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ["semantics", source],
    queryFn: () => api<Semantics>("/api/databases/semantics", { headers: getSourceHeaders(source) }),
    staleTime: 300_000,
  });
  return (
    <Stack gap="xs" component="section" aria-label={t("data.semantics")}>
      <QueryView query={query}>
        {(model) => (
          <>
            <Findings findings={model.findings} />
            {SECTIONS.map((section) => (
              <Terms
                key={section}
                section={section}
                terms={model.terms.filter((term) => term.section === section)}
              />
            ))}
          </>
        )}
      </QueryView>
    </Stack>
  );
}

function Findings({ findings }: { findings: Semantics["findings"] }) {
  const { t } = useTranslation();
  if (findings.length === 0) {
    return (
      <Text size="xs" c="dimmed">
        {t("data.noFindings")}
      </Text>
    );
  }
  return findings.map((finding, index) => (
    <Alert key={index} color={COLORS[finding.severity]} variant="light" p="xs">
      <Text size="xs" fw={600} style={{ overflowWrap: "anywhere" }}>
        {finding.location}
      </Text>
      <Text size="xs">{finding.problem}</Text>
      {finding.hint && (
        <Text size="xs" c="dimmed">
          {finding.hint}
        </Text>
      )}
    </Alert>
  ));
}

type TermsProps = { section: (typeof SECTIONS)[number]; terms: Semantics["terms"] };

function Terms({ section, terms }: TermsProps) {
  const { t } = useTranslation();
  if (terms.length === 0) return null;
  return (
    <>
      <Text size="xs" c="dimmed" fw={600} mt="xs">
        {t(`data.section.${section}`)}
      </Text>
      <Accordion multiple chevronSize={14} className="schema">
        {terms.map((term) => (
          <Accordion.Item key={term.id} value={term.id}>
            <Accordion.Control>
              <Group gap="xs" wrap="nowrap">
                <Text size="xs" ff="monospace" className="truncate">
                  {term.id}
                </Text>
                {term.unit && (
                  <Badge size="xs" variant="default">
                    {term.unit}
                  </Badge>
                )}
              </Group>
            </Accordion.Control>
            <Accordion.Panel>
              <Stack gap={4}>
                {term.description && <Text size="xs">{term.description}</Text>}
                <Code style={{ overflowWrap: "anywhere" }}>{term.expr}</Code>
                {term.synonyms.length > 0 && (
                  <Text size="xs" c="dimmed">
                    {term.synonyms.join(", ")}
                  </Text>
                )}
              </Stack>
            </Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
    </>
  );
}
