import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { sql } from "@codemirror/lang-sql";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { getNonce } from "../nonce";

const LANGUAGES = { sql: () => sql(), json: () => json(), yaml: () => yaml() };
const COLORS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "light-dark(#7c3aed, #c4a7ff)" },
  { tag: [tags.string, tags.special(tags.string)], color: "light-dark(#1a6b35, #8fd9a8)" },
  { tag: [tags.number, tags.bool, tags.null], color: "light-dark(#9a3412, #f7b27a)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "light-dark(#0b5fa5, #7cc4ff)" },
  { tag: tags.comment, color: "light-dark(#59636c, #9ba3ab)" },
]);

export type EditorProps = {
  value: string;
  onChange: (value: string) => void;
  language: keyof typeof LANGUAGES;
  label: string;
  onSubmit?: () => void;
  minHeight?: string;
};

/** An editor of SQL, JSON or YAML. Ctrl-Enter submits; Escape then Tab leaves the editor. */
export default function CodeEditor({
  value,
  onChange,
  language,
  label,
  onSubmit,
  minHeight = "5rem",
}: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const handlers = useRef({ onChange, onSubmit });
  handlers.current = { onChange, onSubmit };

  // biome-ignore lint/correctness/useExhaustiveDependencies: the editor is created once; `value` follows below
  useEffect(() => {
    if (!host.current) return;
    const submit = () => {
      handlers.current.onSubmit?.();
      return handlers.current.onSubmit !== undefined;
    };
    const editor = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: value,
        extensions: [
          EditorView.cspNonce.of(getNonce()),
          history(),
          keymap.of([{ key: "Mod-Enter", run: submit }, indentWithTab, ...defaultKeymap, ...historyKeymap]),
          new Compartment().of(LANGUAGES[language]()),
          syntaxHighlighting(COLORS),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.theme({
            ".cm-content": {
              fontFamily: "var(--mantine-font-family-monospace)",
              minHeight,
              caretColor: "currentColor",
            },
          }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) handlers.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, [language, label]);

  useEffect(() => {
    const editor = view.current;
    if (!editor || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);
  return <div ref={host} />;
}
