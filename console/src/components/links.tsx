import { Anchor, type AnchorProps, Button, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { AnchorHTMLAttributes, Ref } from "react";

type ElementProps<Props> = Props &
  Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof Props> & { ref?: Ref<HTMLAnchorElement> };

/** A link to a page of the console. */
export const PageLink = createLink((props: ElementProps<AnchorProps>) => <Anchor {...props} />);
/** A link to a page of the console that looks like a button. */
export const ButtonLink = createLink((props: ElementProps<ButtonProps>) => (
  <Button component="a" {...props} />
));
