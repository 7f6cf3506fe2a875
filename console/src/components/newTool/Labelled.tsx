import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** An editor with its visible label. */
export function Labelled({ text, children }: { text: string; children: ReactNode }) {
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        {text}
      </Text>
      {children}
    </div>
  );
}
