import i18next from "i18next";

/** Return a duration in seconds as text of a suitable unit. */
export function formatSeconds(seconds: number): string {
  if (seconds < 0.0009995) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.5) return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  const rounded = Math.round(seconds);
  return `${Math.floor(rounded / 60)} min ${rounded % 60} s`;
}

const numberFormats = new Map<string, Intl.NumberFormat>();

/** Return a number in the format of the language. */
export function formatNumber(value: number): string {
  const { language } = i18next;
  const format = numberFormats.get(language) ?? new Intl.NumberFormat(language);
  numberFormats.set(language, format); // creating one takes longer than drawing a row
  return format.format(value);
}

/** Return a time: the hour for today, else the date too, with another year. */
export function formatTime(value: string | null | undefined): string {
  if (!value) return "";
  const time = new Date(value);
  const now = new Date();
  const isToday = time.toDateString() === now.toDateString();
  const year = time.getFullYear() === now.getFullYear() ? undefined : ("numeric" as const);
  const style: Intl.DateTimeFormatOptions = isToday
    ? { hour: "2-digit", minute: "2-digit", second: "2-digit" }
    : { year, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(i18next.language, { ...style, hourCycle: "h23" }).format(time);
}

/** Return the seconds between two times, null while the end is unknown. */
export function getDuration(start: string, end: string | null | undefined): number | null {
  return end ? (Date.parse(end) - Date.parse(start)) / 1000 : null;
}

/** Return arguments as one line of text, for a preview. */
export function previewArguments(values: Record<string, unknown>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ")
    .slice(0, 200);
}

/** Return a text with its first letter in upper case. */
export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
