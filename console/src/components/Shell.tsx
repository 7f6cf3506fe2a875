import {
  ActionIcon,
  Anchor,
  AppShell,
  Badge,
  Box,
  Burger,
  Center,
  Group,
  Loader,
  NavLink,
  Stack,
  Text,
  Tooltip,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import {
  IconActivity,
  IconDatabase,
  IconLanguage,
  IconLogout,
  IconMessages,
  IconMoon,
  IconRobot,
  IconSettings,
  IconStack2,
  IconSun,
  IconTool,
} from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate, useRouterState } from "@tanstack/react-router";
import { Activity, lazy, Suspense, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, api, onUnauthorized, type Session } from "../api/client";
import { approvalsQuery, sessionQuery, useScope } from "../api/queries";
import { setLanguage } from "../i18n";
import { Logo } from "./Logo";
import { ErrorAlert, Forbidden } from "./States";
import { Tour } from "./Tour";

const SignIn = lazy(() => import("../pages/SignIn"));

const PAGES = [
  { to: "/chat", label: "nav.chat", icon: IconMessages, scope: "chat" },
  { to: "/tools", label: "nav.tools", icon: IconTool, scope: "tools:read" },
  { to: "/data", label: "nav.data", icon: IconDatabase, scope: "chat" },
  { to: "/runs", label: "nav.runs", icon: IconActivity, scope: "chat", other: "approve" },
  { to: "/batches", label: "nav.batches", icon: IconStack2, scope: "chat" },
  { to: "/agents", label: "nav.agents", icon: IconRobot, scope: "tools:read" },
  { to: "/settings", label: "nav.settings", icon: IconSettings, scope: "" },
] as const;

/** The frame of every page: navigation, language, colours, session. */
export function Shell() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const session = useQuery(sessionQuery);
  useEffect(
    () => onUnauthorized(() => client.invalidateQueries({ queryKey: sessionQuery.queryKey })),
    [client],
  );
  const isSignedOut = session.error instanceof ApiError && session.error.status === 401;
  if (!session.data && !isSignedOut) {
    return (
      <Center mih="100dvh" p="md">
        {session.error ? (
          <ErrorAlert error={session.error} onRetry={() => session.refetch()} />
        ) : (
          <Loader role="status" aria-label={t("loading")} />
        )}
      </Center>
    );
  }
  // Typed text is preserved when a key that became invalid signs in again. For another key, the page is loaded again.
  const signIn = ({ key_id }: Session) =>
    session.data && session.data.key_id !== key_id ? location.reload() : client.invalidateQueries();
  return (
    <>
      {session.data && (
        <Activity mode={isSignedOut ? "hidden" : "visible"}>
          <Frame session={session.data} />
        </Activity>
      )}
      {isSignedOut && (
        <Suspense>
          <SignIn reason={session.data && session.error} onSignedIn={signIn} />
        </Suspense>
      )}
    </>
  );
}

function Frame({ session }: { session: Session }) {
  const { t } = useTranslation();
  const [isOpen, { toggle, close }] = useDisclosure();
  const { pathname } = useLocation();
  const pending = usePendingApprovals();
  const has = (scope: string) => !scope || session.scopes.includes(scope) || session.scopes.includes("admin");
  const isShown = (item: (typeof PAGES)[number]) => has(item.scope) || ("other" in item && has(item.other));
  const pages = PAGES.filter(isShown);
  // The page that is shown, which is still the previous one while the next one loads.
  const shownPath = useRouterState({ select: ({ matches }) => matches.at(-1)?.pathname ?? "" });
  const page = PAGES.find(({ to }) => shownPath.startsWith(to));
  const isAllowed = !page || isShown(page);
  // The start page of a key without chats is the first page that it allows.
  const target = shownPath === "/chat" && !isAllowed ? pages[0]?.to : undefined;
  const navigate = useNavigate();
  useEffect(() => {
    if (target) navigate({ to: target, replace: true });
  }, [target, navigate]);
  return (
    <AppShell
      navbar={{ width: 208, breakpoint: "sm", collapsed: { mobile: !isOpen } }}
      header={{ height: { base: 48, sm: 0 } }}
    >
      <Anchor href="#main" className="visually-hidden-focusable">
        {t("skip")}
      </Anchor>
      <AppShell.Header hiddenFrom="sm" className="nav">
        <Group h="100%" px="sm" gap="xs">
          <Burger opened={isOpen} onClick={toggle} size="sm" aria-label={t("nav.menu")} />
          <Logo />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className="nav" p="xs" aria-label={t("nav.menu")}>
        <Group px={6} py={8} visibleFrom="sm">
          <UnstyledButton component={Link} to="/chat" aria-label="Opposable">
            <Logo />
          </UnstyledButton>
        </Group>
        <Stack gap={2} mt={4} flex={1}>
          {pages.map((item) => (
            <NavLink
              key={item.to}
              component={Link}
              to={item.to}
              label={t(item.label)}
              leftSection={<item.icon size={17} stroke={1.7} />}
              rightSection={
                item.to === "/runs" && pending > 0 ? (
                  <Badge
                    size="sm"
                    circle={pending < 10}
                    color="orange"
                    aria-label={t("approval.waiting", { count: pending })}
                  >
                    {pending}
                  </Badge>
                ) : undefined
              }
              active={pathname.startsWith(item.to)}
              aria-current={pathname.startsWith(item.to) ? "page" : undefined}
              onClick={close}
              style={{ borderRadius: 8 }}
              py={6}
            />
          ))}
        </Stack>
        <Footer session={session} />
      </AppShell.Navbar>
      <AppShell.Main id="main">
        {isAllowed ? (
          <Outlet />
        ) : target ? null : (
          <Box p="lg">
            <Forbidden scope={page?.scope ?? ""} />
          </Box>
        )}
      </AppShell.Main>
      <Tour />
    </AppShell>
  );
}

function Footer({ session }: { session: Session }) {
  const { t, i18n } = useTranslation();
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  const signOut = async () => {
    await api("/api/session", { method: "DELETE" });
    location.assign("/");
  };
  return (
    <Group justify="space-between" px={6} gap={4} wrap="nowrap">
      <Text size="xs" c="dimmed" className="truncate" title={session.name}>
        {session.name} · {session.version}
      </Text>
      <Group gap={0} wrap="nowrap">
        <Tooltip label={i18n.language === "zh" ? "English" : "中文"}>
          <ActionIcon
            aria-label={t("language")}
            onClick={() => setLanguage(i18n.language === "zh" ? "en" : "zh", true)}
          >
            <IconLanguage size={16} />
          </ActionIcon>
        </Tooltip>
        <Tooltip label={t(scheme === "dark" ? "theme.light" : "theme.dark")}>
          <ActionIcon
            aria-label={t(scheme === "dark" ? "theme.light" : "theme.dark")}
            onClick={() => setColorScheme(scheme === "dark" ? "light" : "dark")}
          >
            {scheme === "dark" ? <IconSun size={16} /> : <IconMoon size={16} />}
          </ActionIcon>
        </Tooltip>
        {session.has_key && (
          <Tooltip label={t("signOut")}>
            <ActionIcon aria-label={t("signOut")} onClick={signOut}>
              <IconLogout size={16} />
            </ActionIcon>
          </Tooltip>
        )}
      </Group>
    </Group>
  );
}

function usePendingApprovals(): number {
  const scopes = [useScope("chat"), useScope("approve")];
  const query = useQuery({ ...approvalsQuery, refetchInterval: 15_000, enabled: scopes.includes(true) });
  return query.data?.items.length ?? 0;
}
