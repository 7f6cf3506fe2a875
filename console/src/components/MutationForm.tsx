import { Stack } from "@mantine/core";
import type { UseMutationResult } from "@tanstack/react-query";
import type { FormEvent, ReactNode } from "react";
import { ActionButton } from "./ActionButton";
import { ErrorAlert } from "./States";

type Props<Result> = {
  mutation: UseMutationResult<Result, Error, void>;
  action: string;
  isIncomplete: boolean;
  children: ReactNode;
};

/** The fields of a form, the error of its mutation, and the button that submits it. */
export function MutationForm<Result>({ mutation, action, isIncomplete, children }: Props<Result>) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    mutation.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        {children}
        <ErrorAlert error={mutation.error} />
        <ActionButton type="submit" loading={mutation.isPending} disabled={isIncomplete}>
          {action}
        </ActionButton>
      </Stack>
    </form>
  );
}
