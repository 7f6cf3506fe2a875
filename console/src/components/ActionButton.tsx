import { Button, type ButtonProps, Loader } from "@mantine/core";
import type { ComponentPropsWithoutRef } from "react";

type Props = ButtonProps & Omit<ComponentPropsWithoutRef<"button">, keyof ButtonProps>;

/** A button that shows that its action is running. It is not disabled meanwhile, which would take its focus away. */
export function ActionButton({ loading = false, leftSection, onClick, ...props }: Props) {
  return (
    <Button
      leftSection={loading ? <Loader size={14} color="currentColor" /> : leftSection}
      aria-busy={loading || undefined}
      aria-disabled={loading || undefined}
      {...props}
      onClick={(event) => (loading ? event.preventDefault() : onClick?.(event))}
    />
  );
}
