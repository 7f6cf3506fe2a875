import { en } from "../i18n/en";
import { ApiError } from "./client";

/** The kinds of errors with a text in the catalog. */
export type ErrorKind = Exclude<keyof typeof en.errors, "unreachableText">;

export type ErrorDescription = {
  kind: ErrorKind;
  /** The text of the server or the browser, which is not translated; empty if there is none. */
  message: string;
  fields: ApiError["fields"];
};

const KINDS_OF_STATUS: Record<number, ErrorKind> = {
  0: "unreachable",
  400: "bad_input",
  401: "invalid_api_key",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  413: "too_large",
  422: "bad_input",
  429: "rate_limited",
  503: "unavailable",
};

/** Return the kind of a thrown value, and what its source says about it. */
export function describeError(error: unknown): ErrorDescription {
  if (error instanceof ApiError) {
    const kind = findKind(error.kind) ?? KINDS_OF_STATUS[error.status] ?? "internal_error";
    return { kind, message: error.message, fields: error.fields };
  }
  const kind = error instanceof SyntaxError ? "invalid_json" : "unexpected";
  return { kind, message: error instanceof Error ? error.message : String(error), fields: [] };
}

/** How the service reports an id with other characters. */
const ID_PROBLEM = "must match the pattern ^[\\w.\\-]+$";

/** Return a problem of the service with the pattern of ids in words. */
export function describeProblem(problem: string, t: (id: "idProblem") => string): string {
  return problem.replace(ID_PROBLEM, () => t("idProblem"));
}

/** Return the kind of an error as the service spells it, undefined if the catalog has no text for it. */
export function findKind(kind: string): ErrorKind | undefined {
  return kind in en.errors && kind !== "unreachableText" ? (kind as ErrorKind) : undefined;
}
