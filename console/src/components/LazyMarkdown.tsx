import { Text } from "@mantine/core";
import { lazy, memo, Suspense } from "react";

const Markdown = lazy(() => import("./Markdown"));

/** Markdown, shown as plain text until its renderer is loaded. */
export const LazyMarkdown = memo(function LazyMarkdown({ text }: { text: string }) {
  return (
    <Suspense
      fallback={
        <Text size="sm" style={{ whiteSpace: "pre-wrap" }}>
          {text}
        </Text>
      }
    >
      <Markdown text={text} />
    </Suspense>
  );
});
