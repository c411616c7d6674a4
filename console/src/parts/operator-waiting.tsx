/** The counts of waiting work. Each opens a list of its oldest items. */
import { Anchor, Modal, Stack, Table, Text } from '@mantine/core';
import { useState } from 'react';
import type { OperatorStatus } from '../answers.ts';
import { duration, paymentText, plural } from '../format.ts';
import { ScrollTable } from './lists.tsx';
import { Things } from './operator.tsx';
import { Card } from './page.tsx';
import { Id } from './values.tsx';

type Waiting = OperatorStatus['waiting'][number];

/** The card with the differences themselves. */
export const DIFFERENCES_ID = 'differences';

const WAITING: Readonly<Record<string, string>> = {
  top_ups_pending: 'Pending top-ups',
  top_ups_disputed: 'Disputed top-ups',
  refunds: 'Refunds to make at Stripe',
  outbox: 'Notices to deliver to workflows',
  webhooks: 'Stripe webhooks to handle',
  events: 'Events to send',
  expired_holds: 'Expired holds to release',
  failing_endpoints: 'Failing webhook endpoints',
  differences: 'Differences from Stripe',
  rollup: 'Earnings not yet rolled up',
};

export function WaitingCounts({ waiting }: Pick<OperatorStatus, 'waiting'>) {
  // By its name: the list stays open while the counts are read again.
  const [shown, setShown] = useState<string>();
  const opened = waiting.find(({ what }) => what === shown);
  return (
    <Card title="Waiting" flush>
      <ScrollTable
        label="Waiting"
        minWidth={260}
        head={
          <>
            <Table.Th>What</Table.Th>
            <Table.Th className="money">Count</Table.Th>
            <Table.Th className="money">Oldest</Table.Th>
          </>
        }
      >
        {waiting.map((each) => (
          <Table.Tr key={each.what}>
            <Table.Td>
              <What waiting={each} onShow={() => setShown(each.what)} />
            </Table.Td>
            <Table.Td className="money">{each.count.toLocaleString('en-US')}</Table.Td>
            <Table.Td className="money">
              {each.count === 0 ? '–' : duration(each.ageSeconds)}
            </Table.Td>
          </Table.Tr>
        ))}
      </ScrollTable>
      <Modal
        opened={opened !== undefined}
        onClose={() => setShown(undefined)}
        title={opened && nameOf(opened)}
        size="xl"
      >
        {opened && <Oldest waiting={opened} />}
      </Modal>
    </Card>
  );
}

function nameOf({ what }: Waiting): string {
  return WAITING[what] ?? what;
}

/** The name of a count, as a link to its list if it has one. */
function What({ waiting, onShow }: { readonly waiting: Waiting; readonly onShow: () => void }) {
  const name = nameOf(waiting);
  if (waiting.what === 'differences' && waiting.count > 0) {
    return (
      <Anchor size="sm" href={`#${DIFFERENCES_ID}`}>
        {name}
      </Anchor>
    );
  }
  if (waiting.oldest.length === 0) return name;
  return (
    <Anchor component="button" type="button" size="sm" ta="left" onClick={onShow}>
      {name}
    </Anchor>
  );
}

function Oldest({ waiting }: { readonly waiting: Waiting }) {
  const { what, count, oldest } = waiting;
  if (oldest.length === 0) return <Text size="sm">Nothing is waiting anymore.</Text>;
  return (
    <Stack gap="sm">
      <Things
        label={nameOf(waiting)}
        things={oldest}
        nameOf={({ id, detail, host }) => (
          <>
            <span className="breaks">{[detailText(detail), host].filter(Boolean).join(' · ')}</span>
            <Id id={id} />
          </>
        )}
      />
      {what === 'events' ? (
        <Text size="sm" c="dimmed">
          {plural(count, 'event')} in total. The endpoint with the oldest event comes first.
        </Text>
      ) : (
        count > oldest.length && (
          <Text size="sm" c="dimmed">
            These are the oldest {oldest.length} of {count.toLocaleString('en-US')}.
          </Text>
        )
      )}
    </Stack>
  );
}

const DETAILS: Readonly<Record<string, string>> = {
  automatic: paymentText({ method: 'direct', automatic: true }),
  checkout: paymentText({ method: 'checkout', automatic: false }),
  direct: paymentText({ method: 'direct', automatic: false }),
  refund: 'Refund',
  dispute: 'Dispute',
  warning: 'Fraud warning',
  requested: 'Not made at Stripe yet',
  top_up: 'New top-up',
  auto_top_up: 'Automatic top-up to start',
  payment_reported: 'Payment reported by Stripe',
  reversal_reported: 'Refund or dispute reported by Stripe',
  grant: 'Grant',
  invocation: 'Invocation',
  approval: 'Approval',
  webhook_endpoint: 'Webhook endpoint',
};

/** Plain words for the detail of something that waits or is stuck. */
export function detailText(detail: string | null): string {
  return detail === null ? '' : (DETAILS[detail] ?? detail);
}
