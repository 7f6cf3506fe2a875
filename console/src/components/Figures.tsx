import { Paper, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** Labels with their values, in as many columns as fit. */
export function Figures({ figures }: { figures: [string, ReactNode][] }) {
  return (
    <div className="figures">
      {figures.map(([label, value]) => (
        <Paper key={label} className="bordered" p="xs" bg="transparent">
          <Text size="xs" c="dimmed" className="capital">
            {label}
          </Text>
          <Text size="sm" fw={600} component="div" style={{ overflowWrap: "anywhere" }}>
            {value}
          </Text>
        </Paper>
      ))}
    </div>
  );
}
