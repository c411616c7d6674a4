/** How somebody adds money: at the hosted checkout, or from the saved card where the owner has allowed it. */
import { Alert, Button, Checkbox, Chip, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { CHECKOUT_MICROS_MIN } from '../../../src/domain/checkout.ts';
import { dollarsOf } from '../../../src/domain/money.ts';
import type { Balance, Checkout, PaidTopUp, Quote } from '../answers.ts';
import { ApiFailure, read, sendPatiently, write } from '../api.ts';
import { isPayable, payableHint, payableMaxOf, statusText, usd } from '../format.ts';
import { balanceRead } from '../page-reads.ts';
import { EARLIER, sendOnce } from '../retry-key.ts';
import { useShownAgain } from '../shown-again.ts';
import { DollarsInput } from './dollars-input.tsx';
import { nameOfCard, useCanCharge, useChargedCard, useConsent } from './saved-card.tsx';
import { Card } from './page.tsx';
import { useSession } from './shell.tsx';
import { Failed, Loading } from './states.tsx';

const AMOUNTS = [10, 25, 50, 100];
const DOLLARS_MIN = dollarsOf(CHECKOUT_MICROS_MIN);
/** Longer than the time between two keystrokes, so that the processor calculates the tax once, not after each digit. */
const TYPING_MS = 300;
const NO_PAGE = 'The payment page is not ready yet. Try again in a moment.';

interface Paid {
  /** The page to go to. */
  readonly sessionUrl?: string;
  readonly topUp?: { readonly amount: number; readonly status: PaidTopUp['status'] };
  /** Read once after it, so that the result does not change its text with later payments and charges. */
  readonly balance?: Balance | undefined;
  /** Whether an earlier request, whose answer was lost, made the top-up. */
  readonly isEarlier?: boolean;
}

export function TopUpForm() {
  const { amount: asked } = useSearch({ from: '/shell/balance' });
  const navigate = useNavigate({ from: '/balance' });
  const [amount, setAmount] = useState(asked ?? '25');
  const [method, setMethod] = useState<'checkout' | 'direct'>('checkout');
  const queries = useQueryClient();
  const consent = useConsent();
  const card = useChargedCard();
  const [savesCard, setSavesCard] = useState(false);
  const session = useSession().data;
  const isTaxed = session?.taxed === true;
  const hasConsent = typeof consent.data?.ceiling === 'number';
  const canUseCard = useCanCharge() === true;
  const way = canUseCard ? method : 'checkout';
  const pay = useMutation({
    // Every attempt sends the choices that were made when the button was pressed.
    mutationFn: async (dollars: number): Promise<Paid> => {
      const paid = await sendOnce('top-up', (idempotencyKey) =>
        sendPatiently(async (): Promise<Paid> => {
          let isEarlier = false;
          const onReplay = () => {
            isEarlier = true;
          };
          const options = { idempotencyKey, onReplay, isPayment: true };
          if (way === 'checkout') {
            const saveCard = hasConsent && savesCard;
            const { sessionUrl, status } = await write<Checkout>(
              '/v1/checkout',
              { amount: dollars, saveCard },
              options,
            );
            // It was paid from the list of top-ups, or has expired.
            if (status !== 'pending') return { topUp: { amount: dollars, status }, isEarlier };
            if (sessionUrl === undefined)
              throw new ApiFailure(202, {}, NO_PAGE, { retryAfter: '1' });
            return { sessionUrl };
          }
          const topUp = await write<PaidTopUp>('/v1/top-up', { amount: dollars }, options);
          // The bank wants it confirmed.
          const { sessionUrl } = topUp;
          return sessionUrl === undefined ? { topUp, isEarlier } : { sessionUrl };
        }),
      );
      if (paid.topUp?.status !== 'completed') return paid;
      // Without it, the text says less.
      const balance = await queries
        .fetchQuery({ ...balanceRead, staleTime: 0, retry: false })
        .catch(() => undefined);
      return { ...paid, balance };
    },
    onSuccess: async ({ sessionUrl }, paid) => {
      if (sessionUrl !== undefined) {
        // For somebody who comes back from the payment page.
        await navigate({ search: { amount: String(paid) }, replace: true });
        return window.location.assign(sessionUrl);
      }
      // Otherwise one more press of Enter would pay the same amount again.
      setAmount('');
      await queries.invalidateQueries();
    },
    onError: () => queries.invalidateQueries({ queryKey: ['top-ups'] }),
  });
  useShownAgain(pay.reset);
  const dollars = Number(amount);
  const max = payableMaxOf(isTaxed);
  const isValid = isPayable(amount, DOLLARS_MIN, max);
  const { topUp, balance, isEarlier } = pay.data ?? {};
  const [typed] = useDebouncedValue(dollars, TYPING_MS);
  // The checkout shows the tax before it is paid; the saved card is charged at once.
  const needsTax = isTaxed && way === 'direct';
  const quote = useQuery({
    queryKey: ['quote', dollars],
    queryFn: () => read<Quote>(`/v1/top-up/quote?amount=${dollars}`),
    enabled: needsTax && isValid && typed === dollars,
    staleTime: 60_000,
  });
  /** Undefined until it has arrived; null if nobody knows it. */
  const tax = needsTax ? quote.data?.tax : 0;
  const isBlind = typeof tax !== 'number';
  if (consent.isPending) {
    return (
      <Card title="Top up">
        <Loading />
      </Card>
    );
  }
  return (
    <Card title="Top up">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isValid && !isBlind && !pay.isPending) pay.mutate(dollars);
        }}
      >
        <Stack gap="sm">
          <Chip.Group value={amount} onChange={setAmount}>
            <Group gap="xs" role="group" aria-label="Amount">
              {AMOUNTS.map((each) => (
                <Chip key={each} value={String(each)} variant="outline" color="indigo">
                  ${each}
                </Chip>
              ))}
            </Group>
          </Chip.Group>
          <DollarsInput
            label="Amount in dollars"
            value={amount}
            onValue={setAmount}
            error={isValid || amount === '' ? undefined : payableHint(DOLLARS_MIN, max)}
          />
          {hasConsent && (
            <SegmentedControl
              aria-label="Pay with"
              value={way}
              onChange={(value) => setMethod(value)}
              data={[
                { value: 'checkout', label: 'Checkout' },
                {
                  value: 'direct',
                  label: canUseCard ? nameOfCard(card) : 'Saved card',
                  disabled: !canUseCard,
                },
              ]}
            />
          )}
          {hasConsent && way === 'checkout' && (
            <Checkbox
              label="Save the card for one-click and automatic top-ups"
              checked={savesCard}
              onChange={(event) => setSavesCard(event.currentTarget.checked)}
            />
          )}
          {isTaxed && way === 'checkout' && (
            <Text size="sm" c="dimmed">
              Tax is added at checkout, based on your address.
            </Text>
          )}
          {typeof tax === 'number' && tax > 0 && (
            <Text size="sm" c="dimmed">
              {`${usd(dollars)} is added to your balance. You pay ${usd(tax)} tax on top of it.`}
            </Text>
          )}
          {tax === null && (
            <Text size="sm" c="dimmed">
              The tax is not known. Pay at checkout, which asks for your address.
            </Text>
          )}
          {tax === undefined && quote.error && (
            <Failed error={quote.error} onRetry={() => void quote.refetch()} />
          )}
          {pay.error && <Failed error={pay.error} />}
          {topUp && (
            <Alert color={topUp.status === 'completed' ? 'green' : 'blue'} role="status">
              {isEarlier === true && `${EARLIER} `}
              {topUpText(topUp, balance)}
            </Alert>
          )}
          <Button
            type="submit"
            disabled={!isValid || isBlind}
            loading={pay.isPending || pay.data?.sessionUrl !== undefined}
          >
            {isValid ? `Pay ${usd(dollars + (tax ?? 0))}` : 'Pay'}
          </Button>
        </Stack>
      </form>
    </Card>
  );
}

/** The result of a top-up, with the balance as it is afterwards. */
export function topUpText(
  { amount, status }: NonNullable<Paid['topUp']>,
  after: Balance | undefined,
): string {
  if (status === 'completed') {
    const paid = `The top-up of ${usd(amount)} was paid.`;
    if (after && after.debt > 0) {
      return `${paid} You owe ${usd(after.debt)}.`;
    }
    // With less in the balance, a part was spent since, or has repaid a debt.
    return after && after.balance >= amount ? `${usd(amount)} was added to your balance.` : paid;
  }
  if (status === 'pending') return `${usd(amount)} is being paid. It shows up under Top-ups.`;
  return `See the top-up of ${usd(amount)} under Top-ups: ${statusText[status] ?? status}.`;
}
