/** The saved card: the owner's consent to payments from it, its monthly limit, and automatic top-ups. */
import { Badge, Button, Checkbox, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { dollarsOf } from '../../../src/domain/money.ts';
import {
  TOP_UP_MICROS_MIN,
  type AutoTopUpFailureCode,
  type SuspectReason,
  type WaitReason,
} from '../../../src/domain/top-up.ts';
import type { Cards, CardSetup, Consent } from '../answers.ts';
import { read, write } from '../api.ts';
import { changesOf } from '../changes.ts';
import { isPayable, payableHint, localDay, usd } from '../format.ts';
import { consentRead } from '../page-reads.ts';
import { showAnswer } from '../show-answer.ts';
import { useShownAgain } from '../shown-again.ts';
import { DollarsInput } from './dollars-input.tsx';
import { Card } from './page.tsx';
import { useSession } from './shell.tsx';
import { Failed, Loaded } from './states.tsx';
import { Money } from './values.tsx';

/** In dollars: the least that a card can pay, and the least balance that can be missing. */
const PAYMENT_MIN = dollarsOf(TOP_UP_MICROS_MIN);
const THRESHOLD_MIN = 0.01;
/** In pixels: the line of one card, which has small buttons. */
const CARD_HEIGHT = 26;

/** The error to show for an amount in dollars; undefined if it is valid. */
function problemOf(text: string, min: number): string | undefined {
  return isPayable(text, min) ? undefined : payableHint(min);
}

export function useConsent() {
  return useQuery(consentRead);
}

export function useCards() {
  return useQuery({
    queryKey: ['cards'],
    queryFn: () => read<Cards>('/v1/cards'),
    staleTime: 60_000,
  });
}

/** The card that a top-up without the owner charges. */
export function useChargedCard() {
  return useCards().data?.cards.find(({ isCharged }) => isCharged);
}

/**
 * Whether the owner has allowed payments from a saved card, and has one; undefined until that is known. The simulator
 * has a card for everybody.
 */
export function useCanCharge(): boolean | undefined {
  const consent = useConsent();
  const cards = useCards();
  const isSimulated = useSession().data?.simulated === true;
  if (typeof consent.data?.ceiling !== 'number') return consent.isPending ? undefined : false;
  if (isSimulated) return true;
  return cards.isPending
    ? undefined
    : (cards.data?.cards.some(({ isCharged }) => isCharged) ?? false);
}

export function nameOfCard(card: Cards['cards'][number] | undefined): string {
  if (!card) return 'Test card';
  const brand = card.brand.charAt(0).toUpperCase() + card.brand.slice(1);
  return `${brand} •••• ${card.lastFour}`;
}

export function SavedCardCards() {
  const consent = useConsent();
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      <Card title="Saved card">
        <Loaded query={consent}>{(data) => <ConsentPart consent={data} />}</Loaded>
      </Card>
      <Card title="Automatic top-up" aside={consent.data && <AutoState consent={consent.data} />}>
        <Loaded query={consent}>{(data) => <AutoPart consent={data} />}</Loaded>
      </Card>
    </SimpleGrid>
  );
}

/**
 * A change of the consent; every answer is the whole consent. `bodyFor` gets the consent as it is now, which another
 * tab may have changed since this one read it, and may refuse to change it.
 */
function useChange(path: string, onDone?: () => void, bodyFor?: (now: Consent) => object) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async () =>
      write<Consent>(path, bodyFor?.(await read<Consent>('/v1/consent')) ?? {}),
    onError: () => queries.invalidateQueries({ queryKey: ['consent'] }),
    onSuccess: async (consent) => {
      await showAnswer(queries, ['consent'], consent);
      void queries.invalidateQueries({ queryKey: ['balance'] });
      onDone?.();
    },
  });
}

function ConsentPart({ consent }: { readonly consent: Consent }) {
  const [isChanging, setChanging] = useState(false);
  const withdraw = useChange('/v1/consent/withdraw');
  const { ceiling, taken, agreedAt } = consent;
  return (
    <Stack gap="sm">
      {isChanging ? (
        <ConsentForm consent={consent} onDone={() => setChanging(false)} />
      ) : ceiling === null ? (
        <>
          <Text size="sm" c="dimmed">
            With your consent, you top up with one click, or automatically, up to a monthly limit.
          </Text>
          <Group>
            <Button variant="default" onClick={() => setChanging(true)}>
              Set up
            </Button>
          </Group>
        </>
      ) : (
        <>
          <Text size="sm">
            <Money dollars={taken} /> of <Money dollars={ceiling} /> used this month (UTC), pending
            payments included.
            {agreedAt !== null && ` You agreed on ${localDay(agreedAt)}.`}
          </Text>
          {withdraw.error && <Failed error={withdraw.error} />}
          <Group gap="xs">
            <Button variant="default" onClick={() => setChanging(true)}>
              Change limit
            </Button>
            <Button
              variant="default"
              loading={withdraw.isPending}
              onClick={() => withdraw.mutate()}
            >
              Withdraw consent
            </Button>
          </Group>
        </>
      )}
      <CardList hasConsent={ceiling !== null} />
    </Stack>
  );
}

/** Below the other buttons: the cards come later, from the payment processor. There is room for one until then. */
function CardList({ hasConsent }: { readonly hasConsent: boolean }) {
  const { data } = useCards();
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (path: string) => write<Cards>(path, {}),
    onSuccess: async (cards) => {
      await showAnswer(queries, ['cards'], cards);
      // Another card ends the pause of automatic top-ups.
      void queries.invalidateQueries({ queryKey: ['consent'] });
    },
  });
  const add = useMutation({
    mutationFn: () => write<CardSetup>('/v1/cards/setup', {}),
    onSuccess: ({ url }) => window.location.assign(url),
  });
  useShownAgain(add.reset);
  const cards = data?.cards ?? [];
  const error = change.error ?? add.error;
  return (
    <Stack gap="xs">
      {hasConsent && (
        <Group>
          <Button
            variant="default"
            loading={add.isPending || add.isSuccess}
            onClick={() => add.mutate()}
          >
            Save a card
          </Button>
        </Group>
      )}
      {error && <Failed error={error} />}
      {cards.map((card) => (
        <Group key={card.id} gap="sm" role="group" aria-label={nameOfCard(card)}>
          <Text fw={600}>{nameOfCard(card)}</Text>
          <Text size="sm" c="dimmed">
            Expires {card.expiresOn.slice(5)}/{card.expiresOn.slice(0, 4)}
          </Text>
          {card.isCharged ? (
            cards.length > 1 && (
              <Badge variant="light" tt="none" fw={500}>
                In use
              </Badge>
            )
          ) : (
            <Button
              size="compact-sm"
              variant="subtle"
              disabled={change.isPending}
              onClick={() => change.mutate(`/v1/cards/${card.id}/choose`)}
            >
              Use this card
            </Button>
          )}
          <Button
            size="compact-sm"
            variant="subtle"
            color="gray"
            disabled={change.isPending}
            onClick={() => change.mutate(`/v1/cards/${card.id}/remove`)}
          >
            Remove
          </Button>
        </Group>
      ))}
      {cards.length === 0 && (
        <Text size="sm" c="dimmed" mih={CARD_HEIGHT}>
          {data?.state === 'known' && 'No card is saved yet.'}
          {data?.state === 'unknown' &&
            'The cards cannot be shown now: the payment processor cannot be reached.'}
        </Text>
      )}
    </Stack>
  );
}

/** What happened elsewhere while the form was open. */
function newsOf({ ceiling }: Consent): string {
  return ceiling === null
    ? 'The consent was withdrawn elsewhere.'
    : `The monthly limit was changed elsewhere, to ${usd(ceiling)}.`;
}

function ConsentForm({
  consent: { ceiling, terms },
  onDone,
}: {
  readonly consent: Consent;
  readonly onDone: () => void;
}) {
  const [opened, setOpened] = useState(ceiling);
  const [limit, setLimit] = useState(String(ceiling ?? 100));
  const [hasAgreed, setAgreed] = useState(false);
  const give = useChange('/v1/consent', onDone, (now) => {
    if (now.ceiling !== opened) {
      setOpened(now.ceiling);
      throw new Error(
        `${newsOf(now)} Nothing was changed. To set your limit anyway, confirm again.`,
      );
    }
    return { ceiling: limit.trim(), termsVersion: terms.version };
  });
  const isValid = isPayable(limit, PAYMENT_MIN);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isValid && hasAgreed) give.mutate();
      }}
    >
      <Stack gap="sm">
        <DollarsInput
          label="Monthly limit in dollars"
          value={limit}
          onValue={setLimit}
          error={problemOf(limit, PAYMENT_MIN)}
        />
        <Text size="sm" c="dimmed">
          {terms.text}
        </Text>
        <Checkbox
          label="I agree"
          checked={hasAgreed}
          onChange={(event) => setAgreed(event.currentTarget.checked)}
        />
        {give.error && <Failed error={give.error} />}
        <Group gap="xs">
          <Button
            type="submit"
            variant="default"
            disabled={!isValid || !hasAgreed}
            loading={give.isPending}
          >
            {opened === null ? 'Allow payments' : 'Save limit'}
          </Button>
          <Button variant="subtle" onClick={onDone}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function AutoState({ consent }: { readonly consent: Consent }) {
  const isOn = consent.autoTopUp?.status === 'on' && reasonOf(consent) === null;
  const isWaiting = !isOn && areOn(consent.autoTopUp);
  return (
    <Badge variant="dot" color={isOn ? 'green' : isWaiting ? 'orange' : 'gray'} tt="none" fw={500}>
      {isOn ? 'On' : isWaiting ? 'Waiting' : 'Off'}
    </Badge>
  );
}

/** They wait without a failure. */
const OBSTACLES: Readonly<Record<WaitReason, string>> = {
  consent_required: 'You have withdrawn your consent to payments from the saved card.',
  consent_ceiling_reached: 'The payment would exceed the monthly limit of the saved card.',
  ceiling_reached: 'The payment would exceed the monthly limit of automatic top-ups.',
  authentication_required: 'The bank wants you to confirm the payment. Open it under Top-ups.',
};

const FAILURES: Readonly<Record<AutoTopUpFailureCode, string>> = {
  card_declined: 'The card was declined. Use or save another card.',
  card_expired: 'The card has expired. Use or save another card.',
  no_saved_card: 'No card is saved. Save one here or at checkout.',
  payment_failed: 'The bank did not complete the payment. Pay at checkout.',
  tax_address_missing: 'The address that the tax depends on is missing. Pay at checkout.',
  invalid_amount: 'The amount is too large. Choose a smaller one.',
};

/** They turned themselves off without a failure. */
const SUSPICIONS: Readonly<Record<SuspectReason, string>> = {
  payment_disputed:
    'A payment was disputed. Ask the cardholder why before you turn automatic top-ups on again.',
  fraud_warning:
    'A bank reported a payment as possible fraud. Ask the cardholder before you turn automatic top-ups on again.',
};

const REASONS: Readonly<Record<string, string>> = { ...OBSTACLES, ...SUSPICIONS, ...FAILURES };

/** Why they wait or are off; null if they are on. The API notes only at the next charge what the consent forbids. */
function reasonOf({ ceiling, autoTopUp }: Consent): string | null {
  if (autoTopUp && autoTopUp.status !== 'off') {
    if (ceiling === null) return 'consent_required';
    if (autoTopUp.amount > ceiling) return 'consent_ceiling_reached';
  }
  return autoTopUp && autoTopUp.reason;
}

/** What follows a failure that was not the last one. */
const TRIED_AGAIN =
  'After a pause, the next charge that leaves too little triggers another attempt; after three failures in a row, automatic top-ups turn off. ' +
  'To end the pause, use or save another card, or save these settings again.';

function AutoPart({ consent }: { readonly consent: Consent }) {
  const [isChanging, setChanging] = useState(false);
  const off = useChange('/v1/auto-top-up/off');
  const { autoTopUp, ceiling } = consent;
  if (ceiling === null && !autoTopUp) {
    return (
      <Text size="sm" c="dimmed">
        When your balance runs low, a top-up from the saved card adds to it. Set up the saved card
        first.
      </Text>
    );
  }
  if (!autoTopUp || isChanging) {
    return <AutoForm consent={consent} onDone={() => setChanging(false)} />;
  }
  const { threshold, amount, ceiling: month, status } = autoTopUp;
  const reason = reasonOf(consent);
  const isOver = status === 'off';
  return (
    <Stack gap="sm">
      <Text size="sm">
        When a charge leaves less than <Money dollars={threshold} />, we add{' '}
        <Money dollars={amount} />, up to <Money dollars={Math.min(month, ceiling ?? month)} /> a
        month (UTC).
      </Text>
      {off.error && <Failed error={off.error} />}
      <Group gap="xs">
        <Button variant="default" onClick={() => setChanging(true)}>
          {isOver ? 'Turn on again' : 'Change'}
        </Button>
        <Button variant="default" loading={off.isPending} onClick={() => off.mutate()}>
          {isOver ? 'Remove' : 'Turn off'}
        </Button>
      </Group>
      {/* Below the buttons, which must not move when it appears. */}
      {reason !== null && (
        <Text size="sm" c="dimmed" role="status">
          {isOver ? 'Turned off: ' : 'Waiting: '}
          {REASONS[reason] ?? reason}
          {!isOver && Object.hasOwn(FAILURES, reason) && ` ${TRIED_AGAIN}`}
        </Text>
      )}
    </Stack>
  );
}

function areOn(autoTopUp: Consent['autoTopUp']): boolean {
  return autoTopUp !== null && autoTopUp.status !== 'off';
}

/** As text that can be edited. */
function settingsOf({
  threshold,
  amount,
  ceiling,
}: Readonly<Record<'threshold' | 'amount' | 'ceiling', number>>) {
  return { threshold: String(threshold), amount: String(amount), ceiling: String(ceiling) };
}

function AutoForm({
  consent: { autoTopUp, ceiling },
  onDone,
}: {
  readonly consent: Consent;
  readonly onDone: () => void;
}) {
  const [opened] = useState(
    settingsOf(
      autoTopUp ?? {
        threshold: 5,
        amount: Math.min(25, ceiling ?? 25),
        ceiling: ceiling ?? 100,
      },
    ),
  );
  const [isOn, setOn] = useState(areOn(autoTopUp));
  const [draft, setDraft] = useState(opened);
  const { threshold, amount, ceiling: month } = draft;
  const set = useChange('/v1/auto-top-up', onDone, ({ autoTopUp: now }) => {
    if (isOn && !areOn(now)) {
      setOn(false);
      throw new Error('Automatic top-ups were turned off elsewhere. Nothing was changed.');
    }
    const changed = { ...draft, ...(now && settingsOf(now)), ...changesOf(opened, draft) };
    return Object.fromEntries(Object.entries(changed).map(([name, text]) => [name, text.trim()]));
  });
  const isTooMuch = Number(amount) > Number(month);
  const isForbidden = ceiling !== null && Number(amount) > ceiling;
  const isValid =
    isPayable(threshold, THRESHOLD_MIN) &&
    isPayable(amount, PAYMENT_MIN) &&
    isPayable(month, PAYMENT_MIN) &&
    !isTooMuch &&
    !isForbidden;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isValid) set.mutate();
      }}
    >
      <Stack gap="sm">
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
          <DollarsInput
            label="When the balance falls below"
            value={threshold}
            onValue={(threshold) => setDraft({ ...draft, threshold })}
            error={problemOf(threshold, THRESHOLD_MIN)}
          />
          <DollarsInput
            label="Add"
            value={amount}
            onValue={(amount) => setDraft({ ...draft, amount })}
            error={
              problemOf(amount, PAYMENT_MIN) ??
              (isForbidden
                ? `The saved card may be charged at most ${usd(ceiling)} a month.`
                : undefined)
            }
          />
        </SimpleGrid>
        <DollarsInput
          label="At most per month"
          value={month}
          onValue={(text) => setDraft({ ...draft, ceiling: text })}
          error={
            problemOf(month, PAYMENT_MIN) ??
            (isTooMuch ? `Enter at least ${usd(Number(amount))}.` : undefined)
          }
        />
        {set.error && <Failed error={set.error} />}
        <Group gap="xs">
          <Button type="submit" variant="default" disabled={!isValid} loading={set.isPending}>
            {isOn ? 'Save' : 'Turn on'}
          </Button>
          {autoTopUp && (
            <Button variant="subtle" onClick={onDone}>
              Cancel
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}
