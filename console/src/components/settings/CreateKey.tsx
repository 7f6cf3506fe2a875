import {
  Alert,
  Button,
  Checkbox,
  Code,
  CopyButton,
  Group,
  Modal,
  NumberInput,
  type NumberInputProps,
  Stack,
  TextInput,
} from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api } from "../../api/client";
import { sessionQuery } from "../../api/queries";
import { MutationForm } from "../MutationForm";

const SCOPES = ["chat", "approve", "tools:read", "tools:write", "admin"];

/** A dialog that creates an API key and shows it once. */
export function CreateKey({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const hasKey = useQuery(sessionQuery).data?.has_key ?? true;
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState(["chat"]);
  const [budget, setBudget] = useState<number | string>("");
  const [rate, setRate] = useState<number | string>("");
  const create = useMutation({
    mutationFn: () =>
      api<{ key: string }>("/api/keys", {
        method: "POST",
        body: {
          name: name.trim(),
          scopes,
          token_budget: budget === "" ? null : Number(budget),
          rate_limit: rate === "" ? null : { calls: Number(rate), seconds: 60 },
        },
      }),
    onSuccess: async ({ key }) => {
      // Without keys the console needs none; the first one is needed from now on.
      if (!hasKey) await api("/api/session", { method: "POST", headers: { Authorization: `Bearer ${key}` } });
      await client.invalidateQueries();
    },
  });
  return (
    <Modal
      opened
      onClose={onClose}
      title={t("settings.createKey")}
      closeOnClickOutside={!create.data}
      closeOnEscape={!create.data}
    >
      {create.data ? (
        <Stack>
          <Alert color="orange" variant="light">
            {t("settings.shownOnce")}
          </Alert>
          <Code block style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
            {create.data.key}
          </Code>
          <Group>
            <CopyButton value={create.data.key}>
              {({ copied, copy }) => <Button onClick={copy}>{copied ? t("copied") : t("copy")}</Button>}
            </CopyButton>
            <Button variant="default" onClick={onClose}>
              {t("close")}
            </Button>
          </Group>
        </Stack>
      ) : (
        <MutationForm
          mutation={create}
          action={t("settings.createKey")}
          isIncomplete={!name.trim() || scopes.length === 0 || (!hasKey && !scopes.includes("admin"))}
        >
          <TextInput
            label={t("settings.keyName")}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            data-autofocus
            maxLength={100}
          />
          <Checkbox.Group label={t("settings.scopes")} value={scopes} onChange={setScopes}>
            <Group mt={6}>
              {SCOPES.map((scope) => (
                <Checkbox key={scope} value={scope} label={scope} />
              ))}
            </Group>
          </Checkbox.Group>
          <Group grow>
            <LimitInput label={t("settings.budget")} min={0} value={budget} onChange={setBudget} />
            <LimitInput label={t("settings.rate")} min={1} value={rate} onChange={setRate} />
          </Group>
          {!hasKey && (
            <Alert color="orange" variant="light">
              {t("settings.firstKey")}
            </Alert>
          )}
        </MutationForm>
      )}
    </Modal>
  );
}

function LimitInput(props: NumberInputProps) {
  const { t } = useTranslation();
  return <NumberInput placeholder={t("agents.noLimit")} allowDecimal={false} {...props} />;
}
