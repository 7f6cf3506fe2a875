import { Button, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { formatTime } from "../format";
import { type Change, listChanges } from "./changes";
import { RecordTable } from "./RecordTable";

export type Version<Spec> = { version: number; spec: Spec; time: string; author?: string };
type Props<Spec> = {
  versions: Version<Spec>[];
  label: string;
  describeAction: (version: number) => string;
  /** Without it, the versions are only shown. */
  onSelect: ((spec: Spec) => void) | undefined;
  isBusy?: boolean;
};

/** Versions of a spec, newest first, each with what it changed. An earlier one can be selected. */
export function Versions<Spec extends object>({
  versions,
  label,
  describeAction,
  onSelect,
  isBusy,
}: Props<Spec>) {
  const { t } = useTranslation();
  const rows = versions.map((row, index) => {
    const previous = versions[index + 1];
    return { ...row, changes: previous && listChanges(previous.spec, row.spec) };
  });
  return (
    <RecordTable
      items={rows}
      getKey={({ version }) => version}
      columns={[
        { label: t("versions.version"), cell: ({ version }) => `v${version}` },
        { label: t("versions.changes"), cell: ({ changes }) => <Changes changes={changes} />, kind: "wide" },
        ...(rows.some(({ author }) => author)
          ? [{ label: t("versions.author"), cell: ({ author }: Version<Spec>) => author || "–" }]
          : []),
        { label: t("runs.time"), cell: ({ time }) => formatTime(time), kind: "time" },
        ...(onSelect
          ? [
              {
                label: t("actions"),
                cell: ({ version, spec }: Version<Spec>) =>
                  version === versions[0]?.version ? (
                    <Text size="xs" c="dimmed">
                      {t("versions.current")}
                    </Text>
                  ) : (
                    <Button
                      size="compact-xs"
                      variant="light"
                      onClick={() => onSelect(spec)}
                      disabled={isBusy}
                      aria-label={describeAction(version)}
                    >
                      {label}
                    </Button>
                  ),
              },
            ]
          : []),
      ]}
    />
  );
}

function Changes({ changes }: { changes: Change[] | undefined }) {
  if (!changes) return "–";
  return (
    <Stack gap={2}>
      {changes.map(({ field, before, after }) => (
        <Text key={field} size="xs" className="change">
          <code>{field}</code>: {before && <del>{before}</del>} <ins>{after}</ins>
        </Text>
      ))}
    </Stack>
  );
}
