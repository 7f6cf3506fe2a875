import { Alert, List, Paper, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { DataAnswer } from "../api/runState";
import { LazyMarkdown } from "./LazyMarkdown";

/** The answer to a question about data in words, with its error, doubts, assumptions and confidence. */
export function AnswerText({ answer }: { answer: DataAnswer }) {
  const { t } = useTranslation();
  const isErrorRepeated = answer.error !== "" && answer.text.includes(answer.error);
  const doubts = [...new Set([...answer.warnings, ...answer.doubts])];
  const notes = [...answer.assumptions, ...answer.corrections];
  return (
    <Paper className="bordered" p="md" bg="transparent">
      {answer.error && (
        <Alert color="red" variant="light" role="alert" title={t("data.noAnswer")}>
          {answer.error}
        </Alert>
      )}
      {!isErrorRepeated && <LazyMarkdown text={answer.text} />}
      {doubts.length > 0 && (
        <Alert color="orange" variant="light" mt="xs" p="xs" title={t("data.warnings")}>
          {doubts.map((warning) => (
            <Text size="sm" key={warning}>
              {warning}
            </Text>
          ))}
        </Alert>
      )}
      {notes.length > 0 && (
        <List size="xs" c="dimmed" mt="xs">
          {notes.map((note) => (
            <List.Item key={note}>{note}</List.Item>
          ))}
        </List>
      )}
      {!answer.error && answer.confidence !== null && (
        <Text size="xs" c="dimmed" mt={6}>
          {t("data.confidence", { percent: Math.round(answer.confidence * 100) })}
        </Text>
      )}
    </Paper>
  );
}
