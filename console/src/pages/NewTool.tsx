import { Tabs } from "@mantine/core";
import { IconChevronLeft } from "@tabler/icons-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { useScope } from "../api/queries";
import { PageLink } from "../components/links";
import { FunctionToolForm } from "../components/newTool/FunctionToolForm";
import { HttpToolForm } from "../components/newTool/HttpToolForm";
import { McpImport } from "../components/newTool/McpImport";
import { OpenApiImport } from "../components/newTool/OpenApiImport";
import { SkillImport } from "../components/newTool/SkillImport";
import { Page } from "../components/Page";
import { Forbidden } from "../components/States";
import { TabList } from "../components/TabList";

export function NewToolPage() {
  const { t } = useTranslation();
  const canWrite = useScope("tools:write");
  return (
    <Page
      title={t("tools.add")}
      back={
        <PageLink to="/tools" size="sm" c="dimmed">
          <IconChevronLeft size={14} style={{ verticalAlign: "-2px" }} /> {t("nav.tools")}
        </PageLink>
      }
    >
      {canWrite ? <Kinds /> : <Forbidden scope="tools:write" />}
    </Page>
  );
}

function Kinds() {
  const { t } = useTranslation();
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const kinds = ["http", "openapi", ...(useScope("admin") ? ["mcp"] : []), "function", "skill"];
  const kind = search.kind && kinds.includes(search.kind) ? search.kind : "http";
  return (
    <Tabs
      value={kind}
      onChange={(value) =>
        navigate({ to: "/tools/new", search: { kind: value ?? undefined }, replace: true })
      }
      keepMounted={false}
    >
      <TabList selected={kind}>
        {kinds.map((name) => (
          <Tabs.Tab key={name} value={name} data-tab={name}>
            {t(`newTool.${name}`)}
          </Tabs.Tab>
        ))}
      </TabList>
      <Tabs.Panel value="http">
        <HttpToolForm />
      </Tabs.Panel>
      <Tabs.Panel value="openapi">
        <OpenApiImport />
      </Tabs.Panel>
      <Tabs.Panel value="mcp">
        <McpImport />
      </Tabs.Panel>
      <Tabs.Panel value="function">
        <FunctionToolForm />
      </Tabs.Panel>
      <Tabs.Panel value="skill">
        <SkillImport />
      </Tabs.Panel>
    </Tabs>
  );
}
