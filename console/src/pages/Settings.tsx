import { Tabs } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { useScope } from "../api/queries";
import { Page } from "../components/Page";
import { Forbidden } from "../components/States";
import { ApiKeys } from "../components/settings/ApiKeys";
import { GeneralSettings } from "../components/settings/GeneralSettings";
import { ServiceState } from "../components/settings/ServiceState";
import { UsageTable } from "../components/settings/UsageTable";
import { TabList } from "../components/TabList";

const TABS = ["general", "keys", "usage", "service"] as const;

export function SettingsPage() {
  const { t } = useTranslation();
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const isAdmin = useScope("admin");
  const tab = TABS.find((name) => name === search.tab) ?? "general";
  const tabs = TABS.filter((name) => isAdmin || name === "general" || name === "service");
  return (
    <Page title={t("nav.settings")}>
      <Tabs
        value={tab}
        onChange={(value) => navigate({ to: "/settings", search: { tab: value ?? undefined } })}
        keepMounted={false}
      >
        <TabList selected={tab}>
          {tabs.map((name) => (
            <Tabs.Tab key={name} value={name} data-tab={name}>
              {t(`settings.${name}`)}
            </Tabs.Tab>
          ))}
        </TabList>
        <Tabs.Panel value="general">
          <GeneralSettings />
        </Tabs.Panel>
        <Tabs.Panel value="keys">{isAdmin ? <ApiKeys /> : <Forbidden scope="admin" />}</Tabs.Panel>
        <Tabs.Panel value="usage">{isAdmin ? <UsageTable /> : <Forbidden scope="admin" />}</Tabs.Panel>
        <Tabs.Panel value="service">
          <ServiceState />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
