import "../styles/more.css";
import { Center, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type Session } from "../api/client";
import { ActionButton } from "../components/ActionButton";
import { CodeText } from "../components/CodeText";
import { Logo } from "../components/Logo";
import { ErrorAlert } from "../components/States";
import { useTitle } from "../components/title";

type Props = {
  /** Why the key that was signed in is no longer accepted. */
  reason: unknown;
  onSignedIn: (session: Session) => void;
};

/** Sign in with an API key, which the server stores in a cookie that scripts cannot read. */
export default function SignIn({ reason, onSignedIn }: Props) {
  const { t } = useTranslation();
  useTitle(t("signIn.title"));
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(reason);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const bytes = new TextEncoder().encode(key.trim()); // a header is made of bytes: other characters are an error
      const headers = { Authorization: `Bearer ${String.fromCharCode(...bytes)}` };
      onSignedIn(await api<Session>("/api/session", { method: "POST", headers }));
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w={380} maw="100%" radius="lg" component="form" onSubmit={submit}>
        <Stack>
          <Logo />
          <div>
            <Title order={1}>{t("signIn.title")}</Title>
            <Text c="dimmed" size="sm">
              <CodeText>{t("signIn.description")}</CodeText>
            </Text>
          </div>
          <PasswordInput
            label={t("signIn.key")}
            placeholder="opp_…"
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            visibilityToggleButtonProps={{ "aria-label": t("signIn.show") }}
            autoComplete="current-password"
            data-autofocus
            required
          />
          <ErrorAlert error={error} />
          <ActionButton type="submit" loading={isBusy} disabled={!key.trim()}>
            {t("signIn.submit")}
          </ActionButton>
        </Stack>
      </Paper>
    </Center>
  );
}
