import { Skeleton } from "@mantine/core";
import { type ComponentType, lazy, Suspense } from "react";

function withSkeleton<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
  height: number,
) {
  const Loaded = lazy(load) as unknown as ComponentType<Props>;
  return (props: Props) => (
    <Suspense fallback={<Skeleton h={height} />}>
      <Loaded {...props} />
    </Suspense>
  );
}

export const CodeEditor = withSkeleton(() => import("./CodeEditor"), 100);
export const SchemaForm = withSkeleton(() => import("./SchemaForm"), 140);
export const Chart = withSkeleton(() => import("./Chart"), 260);
