/**
 * The code that charges for one of the developer's tools, run from the page: with test keys that are made for
 * it and stay in the memory of this page, or with a live consumer key that the developer pastes.
 */
import { Anchor, Button, Group, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useState, type ReactNode } from 'react';
import { dollarsOf } from '../../../src/domain/money.ts';
import { costOf, picosOfDollars } from '../../../src/domain/rate-card.ts';
import type { NewKey, Tool } from '../answers.ts';
import { ApiFailure, write } from '../api.ts';
import { usd } from '../format.ts';
import { toolsRead } from '../page-reads.ts';
import { writeOnce } from '../retry-key.ts';
import { Card } from './page.tsx';
import { developerSnippets, Snippets, type SampleCharge } from './snippets.tsx';
import { Failed } from './states.tsx';

interface TestKeys {
  readonly secret: string;
  readonly consumer: string;
}

type Priced = Pick<Tool, 'name' | 'price' | 'card'>;

interface Sample {
  readonly charge: SampleCharge;
  /** In dollars. */
  readonly cost: number;
}

/** Enough for a thousand calls at $0.02. */
const PLAY_DOLLARS = 20;

/** The tool of the code while none has a price. */
const EXAMPLE = { name: 'search', price: null };
/** What a charge states for a tool without a price. */
const EXAMPLE_DOLLARS = 0.02;

/** Tokens are sold by the thousand. What costs more, such as a page, is sold one by one. */
const THOUSANDS_DOLLARS_MAX = 0.001;

/** A tool with a rate card is charged by the unit, even if it has a price as well. */
function sampleOf({ name: tool, price, card }: Priced): Sample {
  if (!card) {
    const amount = price ?? EXAMPLE_DOLLARS;
    return { charge: { tool, amount }, cost: amount };
  }
  const prices = Object.entries(card);
  const units = Object.fromEntries(
    prices.map(([unit, dollars]) => [unit, dollars > THOUSANDS_DOLLARS_MAX ? 1 : 1_000]),
  );
  const picosOf = new Map(prices.map(([unit, dollars]) => [unit, picosOfDollars(dollars) ?? 0n]));
  const micros = costOf({ version: 1, picosOf }, units);
  return { charge: { tool, units }, cost: typeof micros === 'number' ? dollarsOf(micros) : 0 };
}

/** The tools that charges have a price for. */
function usePriced(): readonly Priced[] {
  const tools = useQuery(toolsRead).data?.tools ?? [];
  return tools.filter(({ price, card }) => price !== null || card !== undefined);
}

/** For one of the developer's tools, which can be chosen. */
export function ChargeSnippet() {
  const priced = usePriced();
  const [chosen, setChosen] = useState<string | null>(null);
  const tool = priced.find(({ name }) => name === chosen) ?? priced[0] ?? EXAMPLE;
  return (
    <ToolSnippet
      tool={tool}
      aside={
        priced.length > 1 && (
          <Select
            size="xs"
            aria-label="Tool"
            allowDeselect={false}
            data={[...new Set(priced.map((each) => each.name))]}
            value={tool.name}
            onChange={setChosen}
          />
        )
      }
    />
  );
}

/** With a new secret key, for the first of the developer's tools. */
export function NewKeySnippet({ secret }: { readonly secret: string }) {
  const { charge } = sampleOf(usePriced()[0] ?? EXAMPLE);
  return <Snippets snippets={developerSnippets(secret, charge)} />;
}

interface SnippetProps {
  readonly tool: Priced;
  readonly aside?: ReactNode;
}

export function ToolSnippet({ tool, aside }: SnippetProps) {
  const [keys, setKeys] = useState<TestKeys>();
  const sample = sampleOf(tool);
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
        snippets={developerSnippets(keys?.secret ?? 'SECRET_KEY', sample.charge, keys?.consumer)}
      />
      <Title order={3} fz="md" mt="lg" mb="xs">
        Run it here
      </Title>
      {keys ? (
        <RunWithTestKeys keys={keys} tool={tool} />
      ) : (
        <Stack gap="md">
          <CreateTestKeys cost={sample.cost} onMade={setKeys} />
          <RunWithLiveKey {...sample} />
        </Stack>
      )}
    </Card>
  );
}

interface CreateProps {
  /** What one run costs, in dollars. */
  readonly cost: number;
  readonly onMade: (keys: TestKeys) => void;
}

function CreateTestKeys({ cost, onMade }: CreateProps) {
  const queries = useQueryClient();
  const create = useMutation({
    mutationFn: async () => {
      const [{ key: secret }, { key: consumer }] = await Promise.all(
        (['developer', 'consumer'] as const).map((kind) =>
          write<NewKey>('/v1/keys', { kind, mode: 'test', name: 'Developer Dashboard' }),
        ) as [Promise<NewKey>, Promise<NewKey>],
      );
      const amount = Math.max(PLAY_DOLLARS, Math.ceil(cost));
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
function useCharge(sample: SampleCharge, secret?: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (consumerKey: string) =>
      writeOnce<Readonly<Record<string, unknown>>>(
        '/v1/charges',
        { apiKey: consumerKey, ...sample },
        secret === undefined ? {} : { apiKey: secret },
      ),
    onSuccess: () => void queries.invalidateQueries(),
  });
}

interface Registration
  extends Pick<Tool, 'name'>, Required<Pick<Tool, 'card'>>, Pick<TestKeys, 'secret'> {}

/** Test mode has tools of its own. A card there that has the units of the code stays, even if its prices differ. */
async function registerInTestMode({ name, card, secret }: Registration): Promise<void> {
  const sender = { apiKey: secret };
  const { charge } = sampleOf({ name, card, price: null });
  const hasUnits = await write('/v1/quote', { ...charge }, sender).then(
    () => true,
    () => false,
  );
  if (hasUnits) return;
  await write('/v1/tools', { name, card }, sender).catch((error: unknown) => {
    const toolId = error instanceof ApiFailure ? error.toolId : undefined;
    if (toolId === undefined) throw error;
    const changes = { card, archived: false };
    return write(`/v1/tools/${toolId}`, changes, { ...sender, method: 'PATCH' });
  });
}

interface RunProps {
  readonly keys: TestKeys;
  readonly tool: Priced;
}

function RunWithTestKeys({ keys: { secret, consumer }, tool }: RunProps) {
  const { name, card } = tool;
  const charge = useCharge(sampleOf(tool).charge, secret);
  const registration = useMutation({ mutationFn: registerInTestMode });
  const { mutate: register } = registration;
  useEffect(() => {
    if (card) register({ name, card, secret });
  }, [name, card, secret, register]);
  return (
    <Stack gap="sm">
      <Group>
        <Button
          loading={charge.isPending || registration.isPending}
          onClick={() => charge.mutate(consumer)}
        >
          Run
        </Button>
      </Group>
      {registration.error && <Failed error={registration.error} />}
      <Outcome of={charge} />
    </Stack>
  );
}

function RunWithLiveKey({ charge: sample, cost }: Sample) {
  const [consumerKey, setConsumerKey] = useState('');
  const charge = useCharge(sample);
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
            Charge {usd(cost)}
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
