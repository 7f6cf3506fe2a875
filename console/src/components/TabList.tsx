import { Tabs } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";

/** The tabs of a page. On narrow screens the row scrolls to the selected tab. */
export function TabList({ selected, children }: { selected: string | undefined; children: ReactNode }) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const row = list.current;
    const tab = row?.querySelector(`[role="tab"][data-tab="${selected}"]`);
    if (!row || !tab) return;
    const [outer, inner] = [row.getBoundingClientRect(), tab.getBoundingClientRect()];
    row.scrollLeft += inner.left + inner.width / 2 - (outer.left + outer.width / 2);
  }, [selected]);
  return (
    <Tabs.List ref={list} mb="md">
      {children}
    </Tabs.List>
  );
}
