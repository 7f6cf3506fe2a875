import { useEffect } from "react";

/** Show a text in the title of the window. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Opposable` : "Opposable";
  }, [title]);
}
