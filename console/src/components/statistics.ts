import i18next from "i18next";

const HOUR = 3_600_000;

/** Group items by hours for one day, else by days, up to now. Every period has a group, also without items. */
export function countByTime<Item>(
  days: number,
  items: Item[],
  getTime: (item: Item) => string,
  now = Date.now(),
) {
  const step = days <= 1 ? HOUR : 24 * HOUR;
  const count = days <= 1 ? 24 : days;
  const end = days <= 1 ? Math.ceil(now / HOUR) * HOUR : new Date(now).setHours(24, 0, 0, 0);
  const groups: Item[][] = Array.from({ length: count }, () => []);
  for (const item of items) {
    const index = count - 1 - Math.floor((end - 1 - Date.parse(getTime(item))) / step);
    groups[index]?.push(item);
  }
  const style: Intl.DateTimeFormatOptions =
    days <= 1 ? { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } : { month: "short", day: "numeric" };
  const format = new Intl.DateTimeFormat(i18next.language || "en", style);
  return { groups, labels: groups.map((_, index) => format.format(end - (count - index) * step)) };
}
