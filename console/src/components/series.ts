import type { Series } from "./Chart";
import { formatCell } from "./DataGrid";

const MAX_CHART_ROWS = 500;

/** Return the labels, the numeric columns and the names of the axes of rows that a chart can show, or null. */
export function pickSeries(
  columns: string[],
  rows: unknown[][],
): { labels: string[]; series: Series[]; axes: [string, string] } | null {
  if (rows.length < 2 || rows.length > MAX_CHART_ROWS) return null;
  const isNumeric = columns.map((_, index) =>
    rows.every((row) => row[index] === null || typeof row[index] === "number"),
  );
  const x = Math.max(0, isNumeric.indexOf(false));
  const values = columns.map((_, index) => index).filter((index) => index !== x && isNumeric[index]);
  if (values.length === 0) return null;
  const series = values.slice(0, 4).map((index) => ({
    label: columns[index] ?? "",
    values: rows.map((row) => row[index] as number | null),
  }));
  const yName = series.length === 1 ? (series[0]?.label ?? "") : ""; // a legend names several series
  return { labels: rows.map((row) => formatCell(row[x])), series, axes: [columns[x] ?? "", yName] };
}
