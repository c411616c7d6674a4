/** What the link of a refusal leads to: one limit of a budget to raise, or one developer to allow. */
import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { Budget } from '../answers.ts';
import { ApiFailure, read, write } from '../api.ts';
import { inWordsOfForm } from '../field-labels.ts';
import { usd } from '../format.ts';
import { Card } from './page.tsx';
import { Failed, Loaded } from './states.tsx';

/** For a link to something that the signed-in live account does not have. */
export function Elsewhere() {
  return (
    <Alert color="gray" title="Not in this account" role="status">
      This link belongs to another account, or to test mode, which the console does not show. To
      answer a test request, use the link in its email. To change a test budget, use the API.
    </Alert>
  );
}

/** A budget that a link names, unless nobody can charge it any more. */
function Linked({
  budget,
  children,
}: {
  readonly budget: UseQueryResult<Budget>;
  readonly children: (budget: Budget) => ReactNode;
}) {
  const { error } = budget;
  if (error instanceof ApiFailure && error.status === 404) return <Elsewhere />;
  return (
    <Loaded query={budget}>
      {(found) =>
        found.status === 'active' ? (
          children(found)
        ) : (
          <Text className="breaks">
            The budget <bdi>{found.name}</bdi>{' '}
            {found.status === 'closed' ? 'is closed' : 'has expired'}, so its keys cannot be
            charged.
          </Text>
        )
      }
    </Loaded>
  );
}

function useBudget(id: string) {
  return useQuery({
    queryKey: ['budget', id],
    queryFn: () => read<Budget>(`/v1/budgets/${encodeURIComponent(id)}`),
  });
}

/** Changes the budget as it is now: another window may have changed it since this one read it. */
export function useChange(id: string, message: string) {
  const queries = useQueryClient();
  const path = `/v1/budgets/${encodeURIComponent(id)}`;
  return useMutation({
    mutationFn: async (changesTo: (now: Budget) => object) =>
      write<Budget>(path, changesTo(await read<Budget>(path)), { method: 'PATCH' }),
    onSuccess: () => notifications.show({ message }),
    onSettled: () => queries.invalidateQueries(),
  });
}

const GONE = 'This budget no longer has that limit.';

interface Limit {
  /** Null: the budget has no such limit any more. */
  readonly limit: number | null;
  readonly text: string;
  readonly changeTo: (limit: string) => object;
}

function limitOf({ limit, window, maxPerCall, maxLease, used }: Budget, scope: string): Limit {
  if (scope === 'window' && window) {
    return {
      limit: window.limit,
      text: `The limit is ${usd(window.limit)} per ${window.per}; ${usd(window.used)} is spent or held.`,
      changeTo: (raised) => ({ window: { per: window.per, limit: raised } }),
    };
  }
  if (scope === 'per_call') {
    return {
      limit: maxPerCall,
      text: `The limit is ${usd(maxPerCall ?? 0)} per call.`,
      changeTo: (raised) => ({ maxPerCall: raised }),
    };
  }
  if (scope === 'per_lease') {
    return {
      limit: maxLease,
      text: `The limit is ${usd(maxLease ?? 0)} per lease.`,
      changeTo: (raised) => ({ maxLease: raised }),
    };
  }
  return {
    limit: scope === 'total' ? limit : null,
    text: `The limit is ${usd(limit ?? 0)} in total; ${usd(used)} is spent or held.`,
    changeTo: (raised) => ({ limit: raised }),
  };
}

function raise(now: Budget, scope: string, raised: string): object {
  const { limit, changeTo } = limitOf(now, scope);
  if (limit === null) throw new Error(GONE);
  if (!(Number(raised) > limit)) throw new Error(`The limit is already ${usd(limit)}.`);
  return changeTo(raised);
}

export function RaiseLimit({
  budgetId,
  scope,
}: {
  readonly budgetId: string;
  readonly scope: string;
}) {
  const budget = useBudget(budgetId);
  return (
    <Card title="Raise a limit">
      <Linked budget={budget}>{(found) => <RaiseForm budget={found} scope={scope} />}</Linked>
    </Card>
  );
}

function RaiseForm({ budget, scope }: { readonly budget: Budget; readonly scope: string }) {
  const [raised, setRaised] = useState('');
  const change = useChange(budget.id, 'The limit is raised.');
  const { limit, text } = limitOf(budget, scope);
  if (limit === null) return <Text>{GONE}</Text>;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate((now) => raise(now, scope, raised.trim()), {
          onSuccess: () => setRaised(''),
        });
      }}
    >
      <Stack gap="sm">
        <Text>
          Budget <bdi>{budget.name}</bdi>: {text}
        </Text>
        {change.error && <Failed error={change.error} message={inWordsOfForm(change.error)} />}
        <Group align="flex-end" gap="sm">
          <TextInput
            label="Raise it to, in dollars"
            inputMode="decimal"
            maxLength={20}
            value={raised}
            onChange={(event) => setRaised(event.currentTarget.value)}
          />
          <Button type="submit" disabled={!(Number(raised) > limit)} loading={change.isPending}>
            Raise limit
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

export function AllowDeveloper({
  budgetId,
  developerId,
}: {
  readonly budgetId: string;
  readonly developerId: string;
}) {
  const budget = useBudget(budgetId);
  const change = useChange(budgetId, 'The developer is allowed.');
  return (
    <Card title="Allow a developer">
      <Linked budget={budget}>
        {({ name, developers, approveDevelopers, approvedDevelopers }) =>
          developers?.includes(developerId) === false ? (
            <Text className="breaks">
              {developerId} is not among the developers that the budget <bdi>{name}</bdi> allows.
            </Text>
          ) : !approveDevelopers || approvedDevelopers.includes(developerId) ? (
            <Text className="breaks">
              {developerId} may charge the budget <bdi>{name}</bdi>.
            </Text>
          ) : (
            <Stack gap="sm" align="flex-start">
              <Text className="breaks">
                {developerId} is not approved for the budget <bdi>{name}</bdi>.
              </Text>
              {change.error && (
                <Failed error={change.error} message={inWordsOfForm(change.error)} />
              )}
              <Button
                loading={change.isPending}
                onClick={() =>
                  change.mutate((now) => ({
                    approvedDevelopers: [...new Set([...now.approvedDevelopers, developerId])],
                  }))
                }
              >
                Allow this developer
              </Button>
            </Stack>
          )
        }
      </Linked>
    </Card>
  );
}
