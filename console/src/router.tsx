import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  parseSearchWith,
  redirect,
  stringifySearchWith,
} from "@tanstack/react-router";
import { Shell } from "./components/Shell";
import { NotFound, PageError } from "./components/States";

/** Return a function that keeps the string parameters of a URL with these names. */
function search<Name extends string>(...names: Name[]) {
  return (input: Record<string, unknown>): Partial<Record<Name, string>> =>
    Object.fromEntries(
      names
        .filter((name) => input[name] !== undefined && input[name] !== "")
        .map((name) => [name, String(input[name])]),
    ) as Partial<Record<Name, string>>;
}

const root = createRootRoute({ component: Shell });
const index = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/chat" });
  },
});
const chat = createRoute({
  getParentRoute: () => root,
  path: "/chat",
  validateSearch: search("agent", "model", "message"),
  component: lazyRouteComponent(() => import("./pages/Chat"), "ChatPage"),
});
const conversation = createRoute({
  getParentRoute: () => root,
  path: "/chat/$conversationId",
  validateSearch: search("agent", "model"),
  component: lazyRouteComponent(() => import("./pages/Chat"), "ChatPage"),
});
const tools = createRoute({
  getParentRoute: () => root,
  path: "/tools",
  validateSearch: search("q", "type", "tag", "state"),
  component: lazyRouteComponent(() => import("./pages/Tools"), "ToolsPage"),
});
const newTool = createRoute({
  getParentRoute: () => root,
  path: "/tools/new",
  validateSearch: search("kind"),
  component: lazyRouteComponent(() => import("./pages/NewTool"), "NewToolPage"),
});
const tool = createRoute({
  getParentRoute: () => root,
  path: "/tools/$toolId",
  validateSearch: search("tab", "action", "days"),
  component: lazyRouteComponent(() => import("./pages/Tool"), "ToolPage"),
});
const data = createRoute({
  getParentRoute: () => root,
  path: "/data",
  validateSearch: search("agent", "database", "run"),
  component: lazyRouteComponent(() => import("./pages/Data"), "DataPage"),
});
const runs = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  validateSearch: search("tab", "status", "agent", "tool", "failure", "days"),
  component: lazyRouteComponent(() => import("./pages/Runs"), "RunsPage"),
});
const run = createRoute({
  getParentRoute: () => root,
  path: "/runs/$runId",
  validateSearch: search("step"),
  component: lazyRouteComponent(() => import("./pages/Run"), "RunPage"),
});
const batches = createRoute({
  getParentRoute: () => root,
  path: "/batches",
  component: lazyRouteComponent(() => import("./pages/Batches"), "BatchesPage"),
});
const batch = createRoute({
  getParentRoute: () => root,
  path: "/batches/$batchId",
  component: lazyRouteComponent(() => import("./pages/Batch"), "BatchPage"),
});
const agents = createRoute({
  getParentRoute: () => root,
  path: "/agents",
  component: lazyRouteComponent(() => import("./pages/Agents"), "AgentsPage"),
});
const agent = createRoute({
  getParentRoute: () => root,
  path: "/agents/$agentId",
  component: lazyRouteComponent(() => import("./pages/Agent"), "AgentPage"),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  validateSearch: search("tab", "days"),
  component: lazyRouteComponent(() => import("./pages/Settings"), "SettingsPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    index,
    chat,
    conversation,
    tools,
    newTool,
    tool,
    data,
    runs,
    run,
    batches,
    batch,
    agents,
    agent,
    settings,
  ]),
  defaultErrorComponent: ({ error }) => <PageError error={error} />,
  defaultNotFoundComponent: NotFound,
  defaultPreload: "intent",
  parseSearch: parseSearchWith((text) => text), // every parameter is text
  stringifySearch: stringifySearchWith(String),
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
