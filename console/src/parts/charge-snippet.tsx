/**
 * The code that charges for one of the developer's tools, run from the page: with test keys that are made for
 * it and stay in the memory of this page, or with a live consumer key that the developer pastes.
 */
import { Anchor, Button, Group, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import type { NewKey } from '../answers.ts';
import { write } from '../api.ts';
import { usd } from '../format.ts';
import { toolsRead } from '../page-reads.ts';
import { writeOnce } from '../retry-key.ts';
import { Card } from './page.tsx';
import { developerSnippets, Snippets } from './snippets.tsx';
import { Failed } from './states.tsx';

interface TestKeys {
  readonly secret: string;
  readonly consumer: string;
}

interface Call {
  readonly tool: string;
  readonly price: number;
}

/** Enough for a thousand calls at $0.02. */
const PLAY_DOLLARS = 20;

/** What the code charges while no tool has a price. */
const EXAMPLE: Call = { tool: 'search', price: 0.02 };

/** For one of the developer's tools, which can be chosen. */
export function ChargeSnippet() {
  const priced = useQuery(toolsRead).data?.tools.filter(({ price }) => price !== null) ?? [];
  const [chosen, setChosen] = useState<string | null>(null);
  const found = priced.find(({ name }) => name === chosen) ?? priced[0];
  const { tool, price } = found ? { tool: found.name, price: found.price } : EXAMPLE;
  return (
    <ToolSnippet
      tool={tool}
      price={price}
      aside={
        priced.length > 1 && (
          <Select
            size="xs"
            aria-label="Tool"
            allowDeselect={false}
            data={[...new Set(priced.map((each) => each.name))]}
            value={tool}
            onChange={setChosen}
          />
        )
      }
    />
  );
}

interface SnippetProps {
  readonly tool: string;
  /** Null: each charge sets its amount, such as that of the example. */
  readonly price: number | null;
  readonly aside?: ReactNode;
}

export function ToolSnippet({ tool, price: set, aside }: SnippetProps) {
  const [keys, setKeys] = useState<TestKeys>();
  const price = set ?? EXAMPLE.price;
  return (
    <Card title="Charge from your code" aside={aside}>
      <Text c="dimmed" size="sm" mb="xs">
        {keys
          ? 'These test keys spend play money, and are shown only now. '
          : 'Replace SECRET_KEY. '}
        Live keys are under{' '}
        <Anchor component={Link} to="/developer/settings" inherit underline="always">
          Developer Settings
        </Anchor>
        .
      </Text>
      <Snippets
        snippets={developerSnippets(keys?.secret ?? 'SECRET_KEY', tool, price, keys?.consumer)}
      />
      <Title order={3} fz="md" mt="lg" mb="xs">
        Run it here
      </Title>
      {keys ? (
        <RunWithTestKeys keys={keys} tool={tool} price={price} />
      ) : (
        <Stack gap="md">
          <CreateTestKeys price={price} onMade={setKeys} />
          <RunWithLiveKey tool={tool} price={price} />
        </Stack>
      )}
    </Card>
  );
}

interface CreateProps {
  readonly price: number;
  readonly onMade: (keys: TestKeys) => void;
}

function CreateTestKeys({ price, onMade }: CreateProps) {
  const queries = useQueryClient();
  const create = useMutation({
    mutationFn: async () => {
      const [{ key: secret }, { key: consumer }] = await Promise.all(
        (['developer', 'consumer'] as const).map((kind) =>
          write<NewKey>('/v1/keys', { kind, mode: 'test', name: 'Developer Dashboard' }),
        ) as [Promise<NewKey>, Promise<NewKey>],
      );
      const amount = Math.max(PLAY_DOLLARS, Math.ceil(price));
      await write('/v1/top-up', { amount }, { apiKey: consumer });
      return { secret, consumer };
    },
    onSuccess: onMade,
    onSettled: () => queries.invalidateQueries({ queryKey: ['keys'] }),
  });
  return (
    <div>
      <Button loading={create.isPending} onClick={() => create.mutate()}>
        Create test keys
      </Button>
      <Text size="sm" c="dimmed" mt={4}>
        Fills a secret key and a consumer key into the code. They spend play money.
      </Text>
      {create.error && <Failed error={create.error} />}
    </div>
  );
}

/** Each run is a charge of its own, unless the last one had no success: then it repeats that. */
function useCharge({ tool, price }: Call, secret?: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (consumerKey: string) =>
      writeOnce<Readonly<Record<string, unknown>>>(
        '/v1/charges',
        { apiKey: consumerKey, tool, amount: price },
        secret === undefined ? {} : { apiKey: secret },
      ),
    onSuccess: () => void queries.invalidateQueries(),
  });
}

function RunWithTestKeys({ keys, ...call }: Call & { readonly keys: TestKeys }) {
  const charge = useCharge(call, keys.secret);
  return (
    <Stack gap="sm">
      <Group>
        <Button loading={charge.isPending} onClick={() => charge.mutate(keys.consumer)}>
          Run
        </Button>
      </Group>
      <Outcome of={charge} />
    </Stack>
  );
}

function RunWithLiveKey(call: Call) {
  const [consumerKey, setConsumerKey] = useState('');
  const charge = useCharge(call);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        charge.mutate(consumerKey.trim());
      }}
    >
      <Stack gap="sm">
        <Group align="flex-end" gap="sm">
          <TextInput
            label="Consumer key"
            description="Or charge a live key. Create one under Consumer keys to spend your own balance."
            autoComplete="off"
            spellCheck={false}
            maxLength={200}
            required
            withAsterisk={false}
            style={{ flex: '1 1 16rem' }}
            value={consumerKey}
            onChange={(event) => setConsumerKey(event.currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={charge.isPending}>
            Charge {usd(call.price)}
          </Button>
        </Group>
        <Outcome of={charge} />
      </Stack>
    </form>
  );
}

function Outcome({ of: charge }: { readonly of: ReturnType<typeof useCharge> }) {
  return (
    <>
      {charge.error && <Failed error={charge.error} />}
      {charge.data && (
        <pre className="snippet" tabIndex={0} aria-label="Response">
          {JSON.stringify(charge.data, null, 2)}
        </pre>
      )}
    </>
  );
}
