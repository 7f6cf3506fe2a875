import { expect, test } from "vitest";
import { describeProblem } from "./errors";

test("the pattern of ids is described in words", () => {
  const t = () => "may contain only letters";
  const problem = "tool_id: must match the pattern ^[\\w.\\-]+$; name: is required";
  expect(describeProblem(problem, t)).toBe("tool_id: may contain only letters; name: is required");
  expect(describeProblem("must be a number", t)).toBe("must be a number");
});
