export type Change = { field: string; before: string; after: string };

/** Return the fields in which two specs differ, with nested fields by their path. */
export function listChanges(before: object, after: object): Change[] {
  const [old, current] = [flatten(before), flatten(after)];
  return [...new Set([...Object.keys(old), ...Object.keys(current)])]
    .filter((field) => old[field] !== current[field])
    .map((field) => ({ field, before: old[field] ?? "", after: current[field] ?? "" }));
}

function flatten(value: unknown, path = ""): Record<string, string> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return Object.assign(
      {},
      ...Object.entries(value).map(([name, inner]) => flatten(inner, path ? `${path}.${name}` : name)),
    );
  }
  return { [path]: typeof value === "string" ? value : (JSON.stringify(value) ?? "") };
}
