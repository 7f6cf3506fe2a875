import { Group, Text } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { formatNumber } from "../format";

const ROW_HEIGHT = 30;

type Props = { columns: string[]; rows: unknown[][]; label: string; maxHeight?: number };

/** A table of any number of rows (with roles, since positioned rows cannot be table elements), of which only the visible ones are drawn. A click on a header sorts. */
export function DataGrid({ columns, rows, label, maxHeight = 420 }: Props) {
  const { t } = useTranslation();
  const [sort, setSort] = useState<{ column: number; isDescending: boolean } | null>(null);
  const container = useRef<HTMLDivElement>(null);
  const sorted = useMemo(() => {
    if (!sort) return rows;
    const sign = sort.isDescending ? -1 : 1;
    const isNumeric = rows.every((row) => row[sort.column] === null || typeof row[sort.column] === "number");
    const keyed = rows.map((row) => ({ row, key: isNumeric ? row[sort.column] : toText(row[sort.column]) }));
    keyed.sort((a, b) => sign * compare(a.key, b.key));
    return keyed.map(({ row }) => row);
  }, [rows, sort]);
  const virtual = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => container.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
  });
  const numeric = columns.map(
    (_, index) => typeof rows.find((row) => row[index] !== null)?.[index] === "number",
  );
  const toggle = (column: number) =>
    setSort(
      sort?.column !== column
        ? { column, isDescending: false }
        : sort.isDescending
          ? null
          : { column, isDescending: true },
    );
  return (
    <div>
      <div
        ref={container}
        className="data-grid bordered"
        role="table"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        style={{ maxHeight, "--columns": columns.length } as CSSProperties}
        tabIndex={0}
      >
        <div role="rowgroup" style={{ position: "sticky", top: 0, zIndex: 1 }}>
          <div role="row" aria-rowindex={1}>
            {columns.map((column, index) => (
              <div
                key={`${column}${index}`}
                role="columnheader"
                className={numeric[index] ? "numeric" : undefined}
                aria-sort={getAriaSort(sort, index)}
              >
                <button type="button" className="sort-button" onClick={() => toggle(index)}>
                  {column} {sort?.column === index ? (sort.isDescending ? "↓" : "↑") : ""}
                </button>
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              role="row"
              aria-rowindex={item.index + 2}
              style={{ position: "absolute", top: item.start, width: "100%", height: ROW_HEIGHT }}
            >
              {sorted[item.index]?.map((cell, index) => (
                <div
                  key={index}
                  role="cell"
                  className={numeric[index] ? "numeric" : undefined}
                  title={toText(cell)}
                >
                  {cell === null ? <span className="null">NULL</span> : formatCell(cell)}
                </div>
              ))}
            </div>
          ))}
        </div>
      </div>
      <Group mt={4}>
        <Text size="xs" c="dimmed">
          {t("grid.rows", { count: rows.length, number: formatNumber(rows.length) })}
        </Text>
      </Group>
    </div>
  );
}

function getAriaSort(sort: { column: number; isDescending: boolean } | null, column: number) {
  if (sort?.column !== column) return "none";
  return sort.isDescending ? "descending" : "ascending";
}

const COLLATOR = new Intl.Collator(undefined, { numeric: true });

function compare(a: unknown, b: unknown): number {
  if (typeof a === "string" && typeof b === "string") return COLLATOR.compare(a, b);
  return Number(a ?? Number.NEGATIVE_INFINITY) - Number(b ?? Number.NEGATIVE_INFINITY) || 0;
}

const MIDNIGHT = /^(\d{4}-\d\d-\d\d)T00:00:00$/;
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/;

/** Return a cell as it is shown: a time of midnight as its date, a number without the digits of binary fractions. */
export function formatCell(cell: unknown): string {
  if (typeof cell !== "number") return toText(cell).replace(MIDNIGHT, "$1").replace(TIME, "$1 $2");
  return Number.isInteger(cell) ? String(cell) : String(Number(cell.toPrecision(12)));
}

/** Return a cell as text. */
export function toText(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}

/** Numbers with more digits than those of JSON come as text. */
const NUMBER = /^-?\d+(?:\.\d+)?$/;

/** Return rows as CSV. A text that a spreadsheet would evaluate gets an apostrophe in front. */
export function toCsv(columns: string[], rows: unknown[][]): string {
  const quote = (cell: unknown) => {
    const text = toText(cell);
    const isFormula = typeof cell === "string" && /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text);
    const safe = isFormula ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [columns, ...rows].map((row) => row.map(quote).join(",")).join("\r\n");
}
