import "../styles/more.css";
import { Image, Modal } from "@mantine/core";

type Props = { src: string; name: string; isOpen: boolean; onClose: () => void };

/** An image in its full size. */
export default function ImageDialog({ src, name, isOpen, onClose }: Props) {
  return (
    <Modal opened={isOpen} onClose={onClose} title={name} size="xl">
      <Image src={src} alt={name} fit="contain" mah="75vh" />
    </Modal>
  );
}
