import { expect, it } from "vitest";
import { formatCell, toCsv } from "./DataGrid";
import { groupCalls } from "./RunItems";
import { pickSeries } from "./series";
import { countByTime } from "./statistics";

it("groups items by hour and leaves out older ones", () => {
  const now = Date.parse("2026-05-01T10:20:00Z");
  const items = ["2026-05-01T10:10:00Z", "2026-05-01T09:59:00Z", "2026-04-29T10:00:00Z"];
  const { groups } = countByTime(1, items, (item) => item, now);
  expect(groups).toHaveLength(24);
  expect(groups.at(-1)).toEqual(["2026-05-01T10:10:00Z"]);
  expect(groups.at(-2)).toEqual(["2026-05-01T09:59:00Z"]);
  expect(groups.flat()).toHaveLength(2);
});

it("quotes cells of CSV and disarms formulas", () => {
  expect(
    toCsv(
      ["a", "b"],
      [
        ["x,y", '=1+"2"'],
        [null, -3],
        ["-12345678901234567.89", "-1+2"],
      ],
    ),
  ).toBe('a,b\r\n"x,y","\'=1+""2"""\r\n,-3\r\n-12345678901234567.89,\'-1+2');
});

it("groups calls that follow one another", () => {
  const call = (callId: string) => ({ type: "call" as const, callId, name: "t", arguments: {}, output: "" });
  const text = { type: "text" as const, text: "a" };
  expect(groupCalls([call("1"), call("2"), text, call("3")])).toEqual([
    { type: "calls", calls: [call("1"), call("2")] },
    text,
    { type: "calls", calls: [call("3")] },
  ]);
});

it("picks the first text column as labels and the numbers as series", () => {
  expect(
    pickSeries(
      ["id", "country", "total"],
      [
        [1, "UK", 2.5],
        [2, "US", null],
      ],
    ),
  ).toEqual({
    labels: ["UK", "US"],
    series: [
      { label: "id", values: [1, 2] },
      { label: "total", values: [2.5, null] },
    ],
    axes: ["country", ""],
  });
  expect(pickSeries(["a"], [["x"], ["y"]])).toBeNull();
});

it("shows times without the letter between date and hour, and midnight as a date", () => {
  const text = JSON.stringify(
    ["2026-05-01T00:00:00", "2026-05-01T08:30:00Z", "at T00:00:00"].map(formatCell),
  );
  expect(text).toBe('["2026-05-01","2026-05-01 08:30:00Z","at T00:00:00"]');
});
