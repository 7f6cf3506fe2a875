import { Alert, Checkbox, Stack, Table, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ImportOutcome } from "../../api/client";
import { describeProblem } from "../../api/errors";

/** The tools of an import, which may be chosen, and what was left out. */
export function ImportedTools({
  outcome,
  chosen,
  onChoose,
}: {
  outcome: ImportOutcome;
  chosen?: string[];
  onChoose?: (ids: string[]) => void;
}) {
  const { t } = useTranslation();
  return (
    <Stack gap="xs">
      {outcome.wanted_variables.length > 0 && (
        <Alert color="orange" variant="light">
          {t("newTool.variables", { names: outcome.wanted_variables.join(", ") })}
        </Alert>
      )}
      <Table>
        <Table.Tbody>
          {outcome.accepted.map((tool) => (
            <Table.Tr key={tool.tool_id}>
              <Table.Td>
                {chosen && onChoose ? (
                  <Checkbox
                    label={tool.tool_id}
                    checked={chosen.includes(tool.tool_id)}
                    onChange={(event) =>
                      onChoose(
                        event.currentTarget.checked
                          ? [...chosen, tool.tool_id]
                          : chosen.filter((id) => id !== tool.tool_id),
                      )
                    }
                  />
                ) : (
                  tool.tool_id
                )}
              </Table.Td>
              <Table.Td>
                <Text size="xs" c="dimmed" lineClamp={2}>
                  {tool.description}
                </Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {outcome.left_out.map((item) => (
        <Alert key={item.where} color="orange" variant="light" title={item.where}>
          {describeProblem(item.why, t)}
        </Alert>
      ))}
    </Stack>
  );
}
