import { Text } from "@mantine/core";
import type { EditorProps } from "../CodeEditor";
import { CodeEditor } from "../lazy";

/** An editor of JSON with its visible label. */
export function JsonField(props: Omit<EditorProps, "language">) {
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        {props.label}
      </Text>
      <CodeEditor language="json" {...props} />
    </div>
  );
}
