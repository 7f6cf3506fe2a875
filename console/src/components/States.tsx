import { Alert, Button, Center, Loader, Skeleton, Stack, Text, Title } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { describeError, describeProblem } from "../api/errors";
import { CodeText } from "./CodeText";

/** Shown where a list has nothing, with what to do next. */
export function Empty({ icon, title, children }: { icon?: ReactNode; title: string; children?: ReactNode }) {
  return (
    <Center py={48} px="md">
      <Stack align="center" gap="xs" maw={440}>
        {icon && <Text c="dimmed">{icon}</Text>}
        <Title order={2} size="h4" ta="center">
          {title}
        </Title>
        {typeof children === "string" ? (
          <Text c="dimmed" ta="center" size="sm">
            <CodeText>{children}</CodeText>
          </Text>
        ) : (
          children
        )}
      </Stack>
    </Center>
  );
}

function Problem({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Alert color="red" variant="light" icon={<IconAlertTriangle size={18} />} role="alert" title={title}>
      {children}
    </Alert>
  );
}

/** An error in the language of the user, the message and fields of the server, and a way to try again. */
export function ErrorAlert({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { t } = useTranslation();
  if (!error) return null;
  const { kind, message, fields } = describeError(error);
  return (
    <Problem title={t(`errors.${kind}`)}>
      {kind === "unreachable" && <CodeText>{t("errors.unreachableText")}</CodeText>}
      {message && fields.length === 0 && (
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {message}
        </Text>
      )}
      {fields.length > 0 && (
        <ul>
          {fields.map((field) => (
            <li key={field.field}>
              <code>{field.field}</code>: {describeProblem(field.problem, t)}
            </li>
          ))}
        </ul>
      )}
      {onRetry && kind !== "not_found" && (
        <Button mt="xs" display="block" size="compact-sm" variant="default" onClick={onRetry}>
          {t("retry")}
        </Button>
      )}
    </Problem>
  );
}

/** Shown in place of what the key does not allow. */
export function Forbidden({ scope }: { scope: string }) {
  const { t } = useTranslation();
  return (
    <Problem title={t("errors.forbidden")}>
      <CodeText>{t("missingScope", { scope })}</CodeText>
    </Problem>
  );
}

/** The error of a whole page. */
export function PageError({ error }: { error: unknown }) {
  return (
    <Stack p="lg">
      <ErrorAlert error={error} onRetry={() => location.reload()} />
    </Stack>
  );
}

/** The page of a path that the console does not have. */
export function NotFound() {
  const { t } = useTranslation();
  return <Empty title={t("notFound", { path: location.pathname })}>{t("notFoundText")}</Empty>;
}

export function Loading() {
  const { t } = useTranslation();
  return (
    <Center py="xl">
      <Loader size="sm" role="status" aria-label={t("loading")} />
    </Center>
  );
}

/** Show the data of a query, or that it is loading or failed. */
export function QueryView<T>({
  query,
  children,
}: {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <ErrorAlert error={query.error} onRetry={() => query.refetch()} />;
  return (
    <Stack gap="xs" aria-busy="true">
      {[90, 75, 82, 60].map((width) => (
        <Skeleton key={width} h={18} w={`${width}%`} />
      ))}
    </Stack>
  );
}
