import { ActionIcon, CopyButton } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { Children, isValidElement, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import ReactMarkdown, { type Components, defaultUrlTransform } from "react-markdown";
import rehypeSanitize, { defaultSchema } from "rehype-sanitize";
import remarkGfm from "remark-gfm";
import { isShownImage } from "../api/media";
import { BlockedImage } from "./Media";

/** Markdown of a model or a tool: untrusted. No HTML, no remote images, links open in a new tab. */
export default function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[showHtmlAsText, [rehypeSanitize, SCHEMA]]}
        urlTransform={(url, key) => (key === "src" && isShownImage(url) ? url : defaultUrlTransform(url))}
        components={COMPONENTS}
      >
        {text}
      </ReactMarkdown>
    </div>
  );
}

type HtmlNode = { type: string; children?: HtmlNode[] };

/** HTML in Markdown is shown as it was written, never interpreted. */
function showHtmlAsText() {
  const convert = (node: HtmlNode): void => {
    if (node.type === "raw") node.type = "text";
    for (const child of node.children ?? []) convert(child);
  };
  return convert;
}

/** Images may have `data:` URLs: they need no server. `isShownImage` decides which of them are shown. */
const SCHEMA = {
  ...defaultSchema,
  protocols: { ...defaultSchema.protocols, src: ["http", "https", "data"] },
};

const COMPONENTS: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {children}
    </a>
  ),
  img: ({ src, alt }) =>
    isShownImage(String(src ?? "")) ? (
      <img src={String(src)} alt={alt ?? ""} />
    ) : (
      <BlockedImage src={String(src ?? "")} alt={alt ?? ""} />
    ),
  pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
};

function CodeBlock({ children }: { children?: ReactNode }) {
  const { t } = useTranslation();
  const text = toText(children);
  return (
    <div style={{ position: "relative" }}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <pre className="code" tabIndex={0}>
        {text}
      </pre>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <ActionIcon
            onClick={copy}
            aria-label={t("copy")}
            size="sm"
            style={{ position: "absolute", top: 6, right: 6 }}
          >
            {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
          </ActionIcon>
        )}
      </CopyButton>
    </div>
  );
}

function toText(node: ReactNode): string {
  return Children.toArray(node)
    .map((child) => {
      if (!isValidElement<{ children?: ReactNode }>(child)) return String(child);
      return toText(child.props.children);
    })
    .join("");
}
