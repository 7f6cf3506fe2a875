import { CloseButton, Group, Image, Text, UnstyledButton } from "@mantine/core";
import { IconFile } from "@tabler/icons-react";
import { lazy, Suspense, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { MediaPart } from "../api/media";

const ImageDialog = lazy(() => import("./ImageDialog"));

/** Images and files of a message or a result. Only images that came with it are shown: no other server is asked. */
export function Media({ parts, onRemove }: { parts: MediaPart[]; onRemove?: (index: number) => void }) {
  const { t } = useTranslation();
  return (
    <Group gap="xs" role="group" aria-label={t("media.title")}>
      {parts.map((part, index) => (
        <div key={index} className="media">
          <MediaItem part={part} />
          {onRemove && (
            <CloseButton
              size="xs"
              variant="filled"
              className="media-remove"
              onClick={() => onRemove(index)}
              aria-label={t("media.remove", { name: part.name || t("media.image") })}
            />
          )}
        </div>
      ))}
    </Group>
  );
}

function MediaItem({ part }: { part: MediaPart }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const hasOpened = useRef(false);
  hasOpened.current ||= isOpen;
  const name = part.name || t("media.image");
  if (part.remote) return <BlockedImage src={part.remote} alt={name} />;
  if (!part.image) {
    return (
      <Group gap={6} className="bordered media-file" wrap="nowrap">
        <IconFile size={16} />
        <Text size="xs" className="truncate">
          {part.name || part.mediaType}
        </Text>
      </Group>
    );
  }
  return (
    <>
      <UnstyledButton onClick={() => setOpen(true)} aria-label={t("media.open", { name })}>
        <Image src={part.image} alt={name} h={96} w="auto" maw={220} fit="cover" radius="sm" />
      </UnstyledButton>
      {hasOpened.current && (
        <Suspense>
          <ImageDialog src={part.image} name={name} isOpen={isOpen} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

/** The address of an image that is not loaded: loading it would send data to another server. */
export function BlockedImage({ src, alt }: { src: string; alt: string }) {
  const { t } = useTranslation();
  return (
    <Text span c="dimmed" size="sm" data-blocked-image={src}>
      [{t("markdown.image")}: {alt || src}]
    </Text>
  );
}
