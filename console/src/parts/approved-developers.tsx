/** The developers that need no approval for a budget any more, each of which can be removed. */
import { Button, Table, Text } from '@mantine/core';
import type { Budget } from '../answers.ts';
import { useChange } from './budget-limits.tsx';
import { ScrollTable } from './lists.tsx';
import { Card } from './page.tsx';
import { showFailure } from './show-failure.ts';
import { Id } from './values.tsx';

export function ApprovedDevelopers({ budget }: { readonly budget: Budget }) {
  const { id, approveDevelopers, approvedDevelopers } = budget;
  if (approvedDevelopers.length === 0) return null;
  return (
    <Card title="Approved developers" flush>
      {!approveDevelopers && (
        <Text size="sm" c="dimmed" px={{ base: 'md', xs: 'lg' }} pb="sm">
          No developer needs your approval now. If you require it again, these developers still need
          none.
        </Text>
      )}
      <ScrollTable
        label="Approved developers"
        minWidth={280}
        maxHeight={480}
        head={
          <>
            <Table.Th>Developer</Table.Th>
            <Table.Th aria-label="Actions" />
          </>
        }
      >
        {approvedDevelopers.map((developerId) => (
          <Table.Tr key={developerId}>
            <Table.Td>
              <Id id={developerId} />
            </Table.Td>
            <Table.Td ta="right">
              <Remove budgetId={id} developerId={developerId} />
            </Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
    </Card>
  );
}

interface RemoveProps {
  readonly budgetId: string;
  readonly developerId: string;
}

function Remove({ budgetId, developerId }: RemoveProps) {
  const change = useChange(budgetId, 'The developer is no longer approved.');
  return (
    <Button
      size="xs"
      variant="default"
      aria-label={`Remove ${developerId}`}
      loading={change.isPending}
      onClick={() =>
        change.mutate(
          ({ approvedDevelopers }) => ({
            approvedDevelopers: approvedDevelopers.filter((each) => each !== developerId),
          }),
          { onError: ({ message }) => showFailure(message) },
        )
      }
    >
      Remove
    </Button>
  );
}
