import { expect, it } from "vitest";
import { formatSeconds } from "./format";

it.each([
  [0.00042, "420 µs"],
  [0.9996, "1.0 s"],
  [9.96, "10 s"],
  [59.7, "1 min 0 s"],
  [119.6, "2 min 0 s"],
  [3725, "62 min 5 s"],
])("rounds %f seconds to %s", (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text);
});
