import { Group, Text } from "@mantine/core";

export function Logo() {
  return (
    <Group gap={8} wrap="nowrap">
      <img src="/favicon.svg" width={22} height={22} alt="" />
      <Text fw={650} size="md" lts="-0.01em">
        Opposable
      </Text>
    </Group>
  );
}
