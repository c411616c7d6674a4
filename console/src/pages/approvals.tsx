/** Approvals: what agents and tools ask the owner, the answers, and the limit that a refusal's link leads to. */
import { Badge, Button, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconCircleCheck } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { RAISED_LIMIT_LABELS, shortfallOf } from '../../../src/domain/approval.ts';
import { CHECKOUT_MICROS_MIN } from '../../../src/domain/checkout.ts';
import { asMicros, dollarsOf, MICROS_PER_DOLLAR } from '../../../src/domain/money.ts';
import type { Approval, Approvals, Decision } from '../answers.ts';
import { ApiFailure, newIdempotencyKey, read, write } from '../api.ts';
import { usd } from '../format.ts';
import { balanceRead } from '../page-reads.ts';
import { everyPage, PagedList, ScrollTable, usePages, whileOnePage } from '../parts/lists.tsx';
import { AllowDeveloper, Elsewhere, RaiseLimit } from '../parts/budget-limits.tsx';
import { useCanCharge } from '../parts/saved-card.tsx';
import { showFailure } from '../parts/show-failure.ts';
import { Card, Page } from '../parts/page.tsx';
import { useSession } from '../parts/shell.tsx';
import { Empty, Failed, Loaded } from '../parts/states.tsx';
import { Time } from '../parts/values.tsx';

const POLL_MS = 5_000;

export function ApprovalsPage() {
  const { approval, budget, scope, developer } = useSearch({ from: '/shell/approvals' });
  const list = usePages<Approvals>({
    queryKey: ['approvals', 'all'],
    path: '/v1/approvals?limit=50',
    pollMs: whileOnePage(POLL_MS),
  });
  // On their own: one that waits may be older than every answer on a page of the list.
  const questions = usePages<Approvals>({
    queryKey: ['approvals', 'questions'],
    path: '/v1/approvals?status=pending&limit=100',
    pollMs: everyPage(POLL_MS),
  });
  const pending = questions.data?.pages.flatMap(({ approvals }) => approvals) ?? [];
  const all = list.data?.pages.flatMap(({ approvals }) => approvals) ?? [];
  const past = all.filter(({ status }) => status !== 'pending');
  return (
    <Page
      title="Approvals"
      intro="Calls that a budget or your balance refused, and that you were asked to allow."
    >
      {approval !== undefined && <Linked id={approval} />}
      {budget !== undefined && scope !== undefined && (
        <RaiseLimit budgetId={budget} scope={scope} />
      )}
      {budget !== undefined && developer !== undefined && (
        <AllowDeveloper budgetId={budget} developerId={developer} />
      )}
      <PagedList list={questions} isEmpty={pending.length === 0} empty={null}>
        {pending.map((approval) => (
          <Question key={approval.id} approval={approval} />
        ))}
      </PagedList>
      <Card title="Past" flush>
        <PagedList
          list={list}
          isEmpty={past.length === 0}
          empty={
            all.length > 0 ? (
              !list.hasNextPage && (
                <Text size="sm" c="dimmed" px={{ base: 'md', xs: 'lg' }} pb="md">
                  No request has ended yet.
                </Text>
              )
            ) : (
              <Empty icon={<IconCircleCheck size={22} />} title="No requests yet">
                When a call is refused, the caller can ask you to allow it.
              </Empty>
            )
          }
        >
          <PastTable approvals={past} />
        </PagedList>
      </Card>
    </Page>
  );
}

/** Says so if this account does not have the request that a link names. */
function Linked({ id }: { readonly id: string }) {
  const { error } = useQuery({
    queryKey: ['approval', id],
    queryFn: () => read<Approval>(`/v1/approvals/${encodeURIComponent(id)}`),
  });
  return error instanceof ApiFailure && error.status === 404 ? <Elsewhere /> : null;
}

/** Says almost the same as the page behind the link in the email (`approval-page.ts`). */
function questionOf({ code, scope, limit }: Approval): string {
  if (code === 'insufficient_balance') return 'Your balance does not cover the call.';
  if (code === 'approval_required') {
    return 'This developer is not approved for the budget and asks to charge it.';
  }
  const allowed = usd(limit ?? 0);
  if (scope === 'per_call') return `The budget allows at most ${allowed} for one call.`;
  return scope === 'window'
    ? `The call costs more than the budget has left in its current window, which allows ${allowed}.`
    : `The call costs more than what is left of the budget's total limit of ${allowed}.`;
}

function Question({ approval }: { readonly approval: Approval }) {
  const { tool, amount, developerId, reason, askedBy, budgetName, keyId, keyName, expiresAt } =
    approval;
  return (
    <Card title={`Allow a call for ${usd(amount)}?`}>
      <Stack gap="sm">
        <Text>{questionOf(approval)}</Text>
        <Text size="sm" c="dimmed" className="breaks">
          Tool <bdi>{tool}</bdi> of {developerId}
          {budgetName !== null && (
            <>
              , budget <bdi>{budgetName}</bdi>
            </>
          )}
          {keyId === null ? (
            ', by a consumer key'
          ) : (
            <>
              , by the key <bdi>{keyName ?? keyId}</bdi>
            </>
          )}
          . Answer before <Time iso={expiresAt} />.
        </Text>
        {reason !== null && (
          <Text className="breaks">
            {askedBy === 'developer' ? 'The developer' : 'The holder of the key'} wrote: “
            <bdi>{reason}</bdi>”
          </Text>
        )}
        <Answers approval={approval} />
      </Stack>
    </Card>
  );
}

interface Payment {
  readonly idempotencyKey: string;
  readonly amount?: number;
}

/**
 * How each approval was paid for last, until that payment fails. The first key is the id: the same in every tab, so
 * that the question is paid for once. A repeat has the same amount, even if the balance has changed.
 */
const payments = new Map<string, Payment>();

function isFailedPayment(error: unknown): boolean {
  return error instanceof ApiFailure && error.topUpId !== undefined;
}

/** Whether the saved card was not charged, and another try would not help. */
function needsCheckout(error: unknown): boolean {
  return isFailedPayment(error) || (error instanceof ApiFailure && UNCHARGED.has(error.code));
}

const UNCHARGED = new Set(['consent_required', 'consent_ceiling_reached']);

function Answers({ approval: { id, code, scope, amount } }: { readonly approval: Approval }) {
  const queries = useQueryClient();
  const [limit, setLimit] = useState('');
  const canCharge = useCanCharge();
  const decide = useMutation({
    mutationFn: (body: {
      readonly decision: string;
      readonly amount?: number;
      readonly limit?: string;
    }) => {
      const { idempotencyKey } = payments.get(id) ?? { idempotencyKey: id };
      if (body.amount !== undefined) payments.set(id, { idempotencyKey, amount: body.amount });
      return write<Decision>(`/v1/approvals/${id}/decide`, body, {
        idempotencyKey,
        isPayment: true,
      });
    },
    onSuccess: ({ status, sessionUrl }) => {
      // The bank wants the payment confirmed.
      if (sessionUrl !== undefined) return window.location.assign(sessionUrl);
      notifications.show({
        message:
          { approved: 'Allowed.', denied: 'Denied.' }[status as string] ??
          'The payment has started. Follow it under Balance.',
      });
    },
    onError: (error) => {
      if (isFailedPayment(error)) payments.set(id, { idempotencyKey: newIdempotencyKey() });
      // The question is gone once the list has been read again, and with it what is shown in it.
      if (error instanceof ApiFailure && error.status === 409) showFailure(error.message);
    },
    onSettled: () => queries.invalidateQueries(),
  });
  const answer = (
    label: string,
    body: Parameters<typeof decide.mutate>[0],
    variant: 'filled' | 'default' = 'default',
  ) => (
    <Button variant={variant} loading={decide.isPending} onClick={() => decide.mutate(body)}>
      {label}
    </Button>
  );
  return (
    <Stack gap="sm">
      {decide.error && <Failed error={decide.error} />}
      <Group gap="sm">
        {code === 'insufficient_balance' ? (
          <Shortfall amount={amount} asked={payments.get(id)?.amount}>
            {(shortfall, text) => (
              <>
                {canCharge === true &&
                  answer(
                    `Top up ${text} from the saved card`,
                    { decision: 'top_up', amount: shortfall },
                    'filled',
                  )}
                {(canCharge === false || needsCheckout(decide.error)) && (
                  <AtCheckout shortfall={shortfall} />
                )}
              </>
            )}
          </Shortfall>
        ) : (
          answer('Allow once', { decision: 'once' }, 'filled')
        )}
        {code === 'approval_required' &&
          answer('Always allow this developer', { decision: 'always' })}
        {code === 'spend_limit_reached' &&
          answer('Raise the limit just enough', { decision: 'always' })}
        {answer('Deny', { decision: 'deny' })}
      </Group>
      {code === 'spend_limit_reached' && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            decide.mutate({ decision: 'raise', limit: limit.trim() });
          }}
        >
          <Group align="flex-end" gap="sm">
            <TextInput
              label={RAISED_LIMIT_LABELS[scope ?? 'total']}
              inputMode="decimal"
              maxLength={20}
              value={limit}
              onChange={(event) => setLimit(event.currentTarget.value)}
            />
            <Button
              type="submit"
              variant="default"
              disabled={limit.trim() === ''}
              loading={decide.isPending}
            >
              Raise
            </Button>
          </Group>
        </form>
      )}
    </Stack>
  );
}

/** The form of Balance, filled in. Once it is paid, the question is answered. */
function AtCheckout({ shortfall }: { readonly shortfall: number }) {
  const dollars = Math.max(shortfall, dollarsOf(CHECKOUT_MICROS_MIN));
  return (
    <Button
      variant="default"
      renderRoot={(props) => (
        <Link to="/balance" search={{ amount: dollars.toFixed(2) }} {...props} />
      )}
    >
      Top up {usd(dollars)}
    </Button>
  );
}

/** What the balance lacks for the call, in dollars and as text. What the account owes is a part of it, and stands above. */
function Shortfall({
  amount,
  asked,
  children,
}: {
  readonly amount: number;
  /** Dollars of a top-up that was requested and has not failed. */
  readonly asked: number | undefined;
  readonly children: (dollars: number, text: string) => ReactNode;
}) {
  const balance = useQuery({ ...balanceRead, refetchInterval: POLL_MS });
  const isTaxed = useSession().data?.taxed === true;
  return (
    <Loaded query={balance}>
      {({ balance: available, debt }) => {
        const missing = shortfallOf({
          amountMicros: microsOf(amount),
          balanceMicros: microsOf(available),
          debtMicros: microsOf(debt),
        });
        const shortfall = asked ?? dollarsOf(missing);
        return (
          <>
            {debt > 0 && (
              <Text size="sm" w="100%">
                You owe {usd(debt)} for refunded or disputed payments. The top-up pays this first,
                then the call.
              </Text>
            )}
            {children(shortfall, `${usd(shortfall)}${isTaxed ? ' plus tax' : ''}`)}
          </>
        );
      }}
    </Loaded>
  );
}

const microsOf = (dollars: number) => asMicros(Math.round(dollars * MICROS_PER_DOLLAR));

const ANSWERS: Readonly<Record<NonNullable<Approval['decision']>, string>> = {
  once: 'Allowed once',
  always: 'Always allowed',
  raise: 'Limit raised',
  top_up: 'Topped up',
  resolved: 'No longer needed',
  deny: 'Denied',
};

/** One that ended before its time was asked by a key that was revoked, or whose budget was closed. */
function endOf({ decidedAt, expiresAt }: Pick<Approval, 'decidedAt' | 'expiresAt'>): string {
  return decidedAt !== null && decidedAt < expiresAt ? 'Key ended' : 'Expired';
}

function PastTable({ approvals }: { readonly approvals: readonly Approval[] }) {
  return (
    <ScrollTable
      label="Past approvals"
      stacks
      minWidth={560}
      head={
        <>
          <Table.Th>Asked</Table.Th>
          <Table.Th>Tool</Table.Th>
          <Table.Th className="money">Amount</Table.Th>
          <Table.Th>Answer</Table.Th>
        </>
      }
    >
      {approvals.map(
        ({ id, createdAt, tool, amount, decision, budgetName, raisedTo, ...ended }) => (
          <Table.Tr key={id}>
            <Table.Td>
              <Time iso={createdAt} relative />
            </Table.Td>
            <Table.Td data-label="Tool">
              <div>
                <bdi className="one-line" title={tool}>
                  {tool}
                </bdi>
                {budgetName !== null && (
                  <Text size="xs" c="dimmed">
                    <bdi className="one-line" title={budgetName}>
                      {budgetName}
                    </bdi>
                  </Text>
                )}
              </div>
            </Table.Td>
            <Table.Td data-label="Amount" className="money">
              {usd(amount)}
            </Table.Td>
            <Table.Td data-label="Answer">
              <Badge
                variant="dot"
                color={decision === null || decision === 'deny' ? 'gray' : 'green'}
                tt="none"
                fw={500}
              >
                {decision === null ? endOf(ended) : ANSWERS[raisedTo === null ? decision : 'raise']}
                {raisedTo !== null && ` to ${usd(raisedTo)}`}
              </Badge>
            </Table.Td>
          </Table.Tr>
        ),
      )}
    </ScrollTable>
  );
}
