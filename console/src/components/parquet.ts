import { type ColumnSource, parquetWriteBuffer } from "hyparquet-writer";
import { toText } from "./DataGrid";

/** Return rows as a Parquet file. A column of mixed values becomes one of texts. */
export function toParquet(columns: string[], rows: unknown[][]): ArrayBuffer {
  const columnData = columns.map((name, index) =>
    toColumn(
      name,
      rows.map((row) => row[index] ?? null),
    ),
  );
  return parquetWriteBuffer({ columnData });
}

function toColumn(name: string, values: unknown[]): ColumnSource {
  const known = values.filter((value) => value !== null);
  if (known.length > 0 && known.every((value) => typeof value === "boolean")) {
    return { name, data: values, type: "BOOLEAN" };
  }
  if (known.length > 0 && known.every(Number.isSafeInteger)) {
    const data = values.map((value) => (value === null ? null : BigInt(value as number)));
    return { name, data, type: "INT64" };
  }
  if (known.length > 0 && known.every((value) => typeof value === "number")) {
    return { name, data: values, type: "DOUBLE" };
  }
  return { name, data: values.map((value) => (value === null ? null : toText(value))), type: "STRING" };
}
