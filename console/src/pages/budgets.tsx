/** Budgets as a tree, and the one that is chosen: what it allows, its spend keys and what they spent. */
import { Anchor, Box, Button, Table, Text } from '@mantine/core';
import { IconHierarchy, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Budget, Budgets, NewKey } from '../answers.ts';
import { read } from '../api.ts';
import { decimalsOfAll } from '../format.ts';
import { BudgetDetails, BudgetState } from '../parts/budget-details.tsx';
import { CreateBudgetForm } from '../parts/budget-form.tsx';
import { Chosen, type Click } from '../parts/chosen.tsx';
import { FormDialog } from '../parts/form-dialog.tsx';
import { NewKeyModal } from '../parts/keys.tsx';
import { PagedList, ScrollTable, usePages, everyPage } from '../parts/lists.tsx';
import { Card, Page } from '../parts/page.tsx';
import { Snippets, spendKeySnippets } from '../parts/snippets.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Money } from '../parts/values.tsx';

const POLL_MS = 10_000;

/** Where a new budget goes: below this one, or below the account. */
interface Asked {
  readonly parentId: string | undefined;
}

export function BudgetsPage() {
  const { budget: chosen } = useSearch({ from: '/shell/budgets' });
  const navigate = useNavigate();
  const [asked, setAsked] = useState<Asked>();
  const [made, setMade] = useState<NewKey>();
  const [click, setClick] = useState<Click>();
  const onMade = ({ id }: Budget, key: NewKey) => {
    setAsked(undefined);
    setMade(key);
    void navigate({ to: '/budgets', search: { budget: id } });
  };
  return (
    <Page
      title="Budgets"
      intro="A budget limits what its spend keys can spend, across all developers. A spend key can only spend from its budget, so hand it out in place of a consumer key."
    >
      <Tree
        chosen={chosen}
        onChoose={(id) => setClick({ id })}
        onCreate={() => setAsked({ parentId: undefined })}
      />
      {chosen !== undefined && (
        <ChosenBudget
          key={chosen}
          id={chosen}
          click={click}
          onAddBelow={() => setAsked({ parentId: chosen })}
        />
      )}
      <FormDialog
        opened={asked !== undefined}
        onClose={() => setAsked(undefined)}
        title={asked?.parentId === undefined ? 'Create budget' : 'Add a budget below'}
      >
        {asked && <CreateBudgetForm parentId={asked.parentId} onMade={onMade} />}
      </FormDialog>
      <NewKeyModal
        made={made}
        onClose={() => setMade(undefined)}
        snippet={(key) => <Snippets snippets={spendKeySnippets(key)} />}
      />
    </Page>
  );
}

function Tree({
  chosen,
  onChoose,
  onCreate,
}: {
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
  readonly onCreate: () => void;
}) {
  const list = usePages<Budgets>({
    queryKey: ['budgets', 'tree'],
    path: '/v1/budgets?limit=100',
    pollMs: everyPage(POLL_MS),
  });
  const budgets = list.data?.pages.flatMap((page) => page.budgets) ?? [];
  const decimals = decimalsOfAll(budgets.flatMap(({ used, remaining }) => [used, remaining ?? 0]));
  return (
    <Card
      title="Your budgets"
      flush
      aside={
        <Button size="xs" leftSection={<IconPlus size={14} />} onClick={onCreate}>
          Create budget
        </Button>
      }
    >
      <PagedList
        list={list}
        isEmpty={budgets.length === 0}
        empty={
          <Empty icon={<IconHierarchy size={22} />} title="No budgets yet">
            Create a budget with a spend key for your MCP client.
          </Empty>
        }
      >
        <ScrollTable
          label="Budgets"
          minWidth={320}
          stacks
          head={
            <>
              <Table.Th>Name</Table.Th>
              <Table.Th visibleFrom="xs">State</Table.Th>
              <Table.Th className="money">Used</Table.Th>
              <Table.Th className="money">Left</Table.Th>
            </>
          }
        >
          {inOrder(budgets).map(({ budget, depth }) => (
            <Table.Tr key={budget.id}>
              <Table.Td>
                <Anchor
                  size="sm"
                  display="block"
                  title={budget.name}
                  ms={indent(depth)}
                  renderRoot={(props) => (
                    <Link
                      to="/budgets"
                      search={{ budget: budget.id }}
                      resetScroll={false}
                      onClick={() => onChoose(budget.id)}
                      {...props}
                    />
                  )}
                  underline="always"
                  aria-current={budget.id === chosen ? 'true' : undefined}
                  fw={budget.id === chosen ? 600 : 400}
                >
                  <bdi className="one-line">{budget.name}</bdi>
                </Anchor>
                {budget.status !== 'active' && (
                  <Box hiddenFrom="xs" mt={4} ms={indent(depth)}>
                    <BudgetState status={budget.status} />
                  </Box>
                )}
              </Table.Td>
              <Table.Td visibleFrom="xs">
                <BudgetState status={budget.status} />
              </Table.Td>
              <Table.Td className="money" data-label="Used">
                <Money dollars={budget.used} decimals={decimals} />
              </Table.Td>
              <Table.Td className="money" data-label="Left">
                {budget.remaining === null || budget.status !== 'active' ? (
                  <Text component="span" size="sm" c="dimmed">
                    {budget.status === 'active' ? 'No limit' : '–'}
                  </Text>
                ) : (
                  <Money dollars={budget.remaining} decimals={decimals} />
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </ScrollTable>
      </PagedList>
    </Card>
  );
}

function indent(depth: number): string {
  return `calc(var(--mantine-spacing-lg) * ${depth})`;
}

interface ChosenProps {
  readonly id: string;
  readonly click: Click | undefined;
  readonly onAddBelow: () => void;
}

function ChosenBudget({ id, click, onAddBelow }: ChosenProps) {
  const budget = useQuery({
    queryKey: ['budgets', id],
    queryFn: () => read<Budget>(`/v1/budgets/${encodeURIComponent(id)}`),
    refetchInterval: POLL_MS,
  });
  return (
    <Chosen click={!budget.isPending && click?.id === id ? click : undefined}>
      <Loaded query={budget}>
        {(data) => <BudgetDetails budget={data} onAddBelow={onAddBelow} />}
      </Loaded>
    </Chosen>
  );
}

/** A parent before its children. One whose parent is not loaded yet stands as a root. */
function inOrder(
  budgets: readonly Budget[],
): { readonly budget: Budget; readonly depth: number }[] {
  const loaded = new Set(budgets.map(({ id }) => id));
  const below = new Map<string | null, Budget[]>();
  for (const budget of budgets) {
    const { parentId } = budget;
    const at = parentId !== null && loaded.has(parentId) ? parentId : null;
    below.set(at, [...(below.get(at) ?? []), budget]);
  }
  const from = (id: string | null, depth: number): ReturnType<typeof inOrder> =>
    (below.get(id) ?? []).flatMap((budget) => [{ budget, depth }, ...from(budget.id, depth + 1)]);
  return from(null, 0);
}
