import type { ReactNode } from "react";
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import { goTo, usePlace } from "../rpc/place.ts";

interface TabsViewProps {
  readonly label: string;
  readonly tabs: readonly {
    readonly id: string;
    readonly title: string;
    readonly content: () => ReactNode;
  }[];
}

/** Shows the tabs of a page. The page's address selects the open tab, and only that tab's content is rendered. */
export function TabsView({ label, tabs }: TabsViewProps) {
  const { page, id: shownTab, query } = usePlace();
  const first = tabs[0]?.id ?? "";
  const selected = tabs.find(({ id }) => id === query.tab)?.id ?? first;
  const select = (tab: string) =>
    goTo({ page, id: shownTab, query: { ...query, tab: tab === first ? "" : tab } }, "replace");
  return (
    <Tabs className="tabs" selectedKey={selected} onSelectionChange={(key) => select(String(key))}>
      <TabList aria-label={label} className="tab-list">
        {tabs.map(({ id, title }) => (
          <Tab key={id} id={id} className="tab">
            {title}
          </Tab>
        ))}
      </TabList>
      {tabs.map(({ id, content }) => (
        <TabPanel key={id} id={id} className="tab-panel">
          {content()}
        </TabPanel>
      ))}
    </Tabs>
  );
}
