import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const SOURCES = resolve(import.meta.dirname, "..");
const MODULES = resolve(SOURCES, "../node_modules");
const MANTINE = resolve(MODULES, "@mantine/core/esm");
const FORMS = resolve(MODULES, "@rjsf/mantine/lib");

/** Return the names and the source of each import and re-export of a module, without those of types. */
function listImports(text: string): { names: string[]; from: string }[] {
  const statements = text.matchAll(/(?:import|export)\s+(?!type\b)([^;"']*?)\s*from\s*["']([^"']+)["']/g);
  return [...statements].map(([, names = "", from = ""]) => ({
    names: names
      .replace(/[{}]/g, "")
      .split(",")
      .map((name) => name.trim().split(" as ")[0] ?? "")
      .filter((name) => name && !name.startsWith("type ")),
    from,
  }));
}

function findFile(importer: string, from: string): string {
  const path = resolve(dirname(importer), from);
  const isFile = (name: string) => existsSync(name) && statSync(name).isFile();
  return [path, `${path}.ts`, `${path}.tsx`].find(isFile) ?? "";
}

/** Return the Mantine components that modules import, directly or through others. */
function listComponents(entries: string[], followLazy: boolean): Set<string> {
  const components = new Set<string>();
  const files = new Set(entries);
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    for (const { names, from } of listImports(text)) {
      if (from === "@mantine/core") for (const name of names) components.add(name);
      else if (from.startsWith("@rjsf/mantine")) addFormComponents(components);
      else if (from.startsWith(".")) files.add(findFile(file, from));
    }
    const lazy = followLazy ? text.matchAll(/import\("(\.[^"]+)"\)/g) : [];
    for (const [, from = ""] of lazy) files.add(findFile(file, from));
    files.delete("");
  }
  return components;
}

function addFormComponents(components: Set<string>): void {
  for (const name of readdirSync(FORMS, { recursive: true, encoding: "utf8" }))
    if (name.endsWith(".js"))
      for (const { names, from } of listImports(readFileSync(resolve(FORMS, name), "utf8")))
        if (from === "@mantine/core") for (const component of names) components.add(component);
}

/** Return the names of the style files that components need, with those of the components in them. */
function listStyles(components: Set<string>): string[] {
  const files = new Set<string>();
  for (const { names, from } of listImports(readFileSync(resolve(MANTINE, "index.mjs"), "utf8")))
    if (names.some((name) => components.has(name))) files.add(resolve(MANTINE, from));
  for (const file of files)
    for (const { from } of listImports(readFileSync(file, "utf8")))
      if (from.startsWith(".")) files.add(resolve(dirname(file), from));
  const styles = [...files].filter((file) => file.endsWith(".module.mjs"));
  return styles.map((file) => basename(file, ".module.mjs")).sort();
}

function readStyles(name: string): string[] {
  const text = readFileSync(resolve(SOURCES, "styles", name), "utf8");
  return [...text.matchAll(/styles\/([A-Z]\w*)\.css/g)].map(([, style = ""]) => style);
}

const MAIN = resolve(SOURCES, "main.tsx");
const CHAT = resolve(SOURCES, "pages/Chat.tsx");

describe("the styles of the components", () => {
  it("are loaded with the first page where it has the components", () => {
    expect(readStyles("first.css").sort()).toEqual(listStyles(listComponents([MAIN, CHAT], false)));
  });

  it("are loaded for every page", () => {
    const styles = [...readStyles("first.css"), ...readStyles("more.css")].sort();
    expect(styles).toEqual(listStyles(listComponents([MAIN], true)));
  });
});
