import { ActionIcon, CopyButton, Text } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { Children, isValidElement, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";

/** Markdown of a model or a tool: untrusted. No HTML, no remote images, links open in a new tab. */
export default function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[showHtmlAsText, rehypeSanitize]}
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

const COMPONENTS: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {children}
    </a>
  ),
  img: ({ src, alt }) => <BlockedImage src={String(src ?? "")} alt={alt ?? ""} />,
  pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
};

/** The address of an image that is not loaded: loading it would send data to another server. */
function BlockedImage({ src, alt }: { src: string; alt: string }) {
  const { t } = useTranslation();
  return (
    <Text span c="dimmed" size="sm" data-blocked-image={src}>
      [{t("markdown.image")}: {alt || src}]
    </Text>
  );
}

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
