import { expect, test } from "vitest";
import { listChanges } from "./changes";

test("changed, added and removed fields are listed by their path", () => {
  const before = { id: "a", endpoint: { url: "x", headers: { A: "1" } }, tags: ["one"], gone: true };
  const after = { id: "a", endpoint: { url: "y", headers: { A: "1" } }, tags: ["one", "two"], added: null };
  expect(listChanges(before, after)).toEqual([
    { field: "endpoint.url", before: "x", after: "y" },
    { field: "tags", before: '["one"]', after: '["one","two"]' },
    { field: "gone", before: "true", after: "" },
    { field: "added", before: "", after: "null" },
  ]);
  expect(listChanges(before, before)).toEqual([]);
});
