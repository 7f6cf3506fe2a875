import type { MessagePart } from "./client";

/** The most bytes of one attachment, and of all attachments of a message: the server accepts no larger request. */
export const MAX_ATTACHMENT_BYTES = 20 * 1024 * 1024;
export const MAX_TOTAL_BYTES = 22 * 1024 * 1024;
/** The types that the server accepts. */
export const ATTACHMENT_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];

const SHOWN_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,/;

/** An image or file. `image` is a data URL that may be shown, `remote` an address that is not loaded. */
export type MediaPart = { url: string; name: string; mediaType: string; image: string; remote: string };
/** An attachment of a message, as the API takes it. */
export type Attachment = { url: string; name: string };

/** Return whether a URL is that of an image that needs no server and no script. */
export function isShownImage(url: string): boolean {
  return SHOWN_IMAGE.test(url);
}

/** Return the images and files of the parts of a message or result. */
export function toMedia(parts: MessagePart[] = []): MediaPart[] {
  return parts
    .filter((part) => part.type !== "text")
    .map((part) =>
      toMediaPart(part.url || `data:${part.media_type};base64,${part.data ?? ""}`, part.name ?? ""),
    );
}

/** Return attachments in the form in which they are shown. */
export function attachmentsToMedia(attachments: Attachment[]): MediaPart[] {
  return attachments.map(({ url, name }) => toMediaPart(url, name));
}

/** Return the attachments that send images and files again. */
export function toAttachments(media: MediaPart[]): Attachment[] {
  return media.map(({ url, name }) => ({ url, name }));
}

function toMediaPart(url: string, name: string): MediaPart {
  const remote = /^https?:/.test(url) ? url : "";
  const mediaType = remote ? "" : url.slice("data:".length, url.indexOf(";"));
  return { url, name, mediaType, image: isShownImage(url) ? url : "", remote };
}

/** Read a file as an attachment. */
export function readAttachment(file: File): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ url: String(reader.result), name: file.name });
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
