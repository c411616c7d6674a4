/** The developer's tools, in use or archived. */
import {
  Anchor,
  Badge,
  Button,
  Group,
  SegmentedControl,
  Table,
  Text,
  VisuallyHidden,
} from '@mantine/core';
import { IconPlus, IconTool } from '@tabler/icons-react';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Tool, Tools } from '../answers.ts';
import { decimalsOfAll, plural } from '../format.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { PagedList, ScrollTable, usePages } from '../parts/lists.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { ToolForm } from '../parts/tool-form.tsx';
import { Money } from '../parts/values.tsx';

export function ToolsPage() {
  const { archived } = useSearch({ from: '/shell/developer/tools' });
  const isArchived = archived === 'true';
  const navigate = useNavigate({ from: '/developer/tools' });
  const list = usePages<Tools>({
    queryKey: ['tools', 'pages', String(isArchived)],
    path: `/v1/tools?archived=${isArchived}&limit=100`,
  });
  const tools = list.data?.pages.flatMap((page) => page.tools) ?? [];
  const [edited, setEdited] = useState<Tool | 'new'>();
  const close = () => setEdited(undefined);
  return (
    <Page
      title="Tools"
      intro="Each charge names a tool. Once you set a price here, charges can omit the amount."
      aside={
        <Button leftSection={<IconPlus size={16} />} onClick={() => setEdited('new')}>
          Register tool
        </Button>
      }
    >
      <Group>
        <SegmentedControl
          value={isArchived ? 'true' : 'false'}
          onChange={(value) =>
            void navigate({ search: value === 'true' ? { archived: 'true' } : {} })
          }
          aria-label="Show"
          data={[
            { value: 'false', label: 'In use' },
            { value: 'true', label: 'Archived' },
          ]}
        />
      </Group>
      <Card flush>
        <PagedList
          list={list}
          isEmpty={tools.length === 0}
          empty={
            <Empty
              icon={<IconTool size={22} />}
              title={isArchived ? 'No archived tools' : 'No tools yet'}
            >
              {isArchived
                ? 'Archived tools appear here with their revenue.'
                : 'Register a tool, or charge for one: a new tool appears here with its first charge.'}
            </Empty>
          }
        >
          <ToolTable tools={tools} isArchived={isArchived} onEdit={setEdited} />
        </PagedList>
      </Card>
      <FormDialog
        opened={edited !== undefined}
        onClose={close}
        title={edited === 'new' ? 'Register tool' : 'Edit tool'}
      >
        {edited !== undefined && (
          <ToolForm
            tool={edited === 'new' ? undefined : edited}
            isArchived={isArchived}
            onDone={close}
          />
        )}
      </FormDialog>
    </Page>
  );
}

interface TableProps {
  readonly tools: readonly Tool[];
  readonly isArchived: boolean;
  readonly onEdit: (tool: Tool) => void;
}

function ToolTable({ tools, isArchived, onEdit }: TableProps) {
  const revenue = decimalsOfAll(tools.map(({ totalRevenue }) => totalRevenue));
  const prices = decimalsOfAll(tools.map(({ price }) => price ?? 0));
  return (
    <ScrollTable
      label="Tools"
      minWidth={280}
      head={
        <>
          <Table.Th>Tool</Table.Th>
          <Table.Th className="money">Price</Table.Th>
          <Table.Th className="money" visibleFrom="sm">
            Charges
          </Table.Th>
          <Table.Th className="money" visibleFrom="sm">
            Revenue
          </Table.Th>
          <Table.Th aria-label="Actions" />
        </>
      }
    >
      {tools.map((tool) => (
        <Table.Tr key={tool.id}>
          <Table.Td>
            <Group gap="xs" wrap="nowrap">
              <Anchor
                inherit
                title={tool.name}
                renderRoot={(props) => (
                  <Link to="/developer/tools/$toolId" params={{ toolId: tool.id }} {...props} />
                )}
              >
                <bdi className="one-line">{tool.name}</bdi>
              </Anchor>
              {isArchived && (
                <Badge variant="default" tt="none" fw={500}>
                  Archived
                </Badge>
              )}
            </Group>
            <Text size="xs" c="dimmed" lineClamp={2} className="breaks">
              {tool.description}
            </Text>
            <Text size="xs" c="dimmed" hiddenFrom="sm">
              {plural(tool.totalCharges, 'charge')}, <Money dollars={tool.totalRevenue} />
            </Text>
          </Table.Td>
          <Table.Td className="money">
            {tool.price === null ? (
              <Text size="sm" c="dimmed" className="in-words">
                {!tool.card ? 'Set by each charge' : 'By the unit'}
              </Text>
            ) : (
              <Money dollars={tool.price} decimals={prices} />
            )}
          </Table.Td>
          <Table.Td className="money" visibleFrom="sm">
            {tool.totalCharges.toLocaleString('en-US')}
          </Table.Td>
          <Table.Td className="money" visibleFrom="sm">
            <Money dollars={tool.totalRevenue} decimals={revenue} />
          </Table.Td>
          <Table.Td ta="right">
            <Button size="xs" variant="default" onClick={() => onEdit(tool)}>
              Edit <VisuallyHidden>{tool.name}</VisuallyHidden>
            </Button>
          </Table.Td>
        </Table.Tr>
      ))}
    </ScrollTable>
  );
}
