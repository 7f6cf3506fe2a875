import { Box, Group, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import "../styles/more.css";
import { useTitle } from "./title";

type Props = {
  title: string;
  description?: string;
  actions?: ReactNode;
  back?: ReactNode;
  children: ReactNode;
};

/** A page with its heading, description and actions. */
export function Page({ title, description, actions, back, children }: Props) {
  useTitle(title);
  return (
    <Box px={{ base: "md", sm: "xl" }} py="lg" maw={1280} mx="auto">
      <Group justify="space-between" align="flex-start" mb="md" gap="sm">
        <Stack gap={2} miw={0} flex="1 1 16rem">
          {back}
          <Title order={1} style={{ overflowWrap: "anywhere" }}>
            {title}
          </Title>
          {description && (
            <Text c="dimmed" size="sm" maw={720} style={{ overflowWrap: "anywhere" }}>
              {description}
            </Text>
          )}
        </Stack>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Box>
  );
}
