/** What operators can correct: a balance, by an adjustment, and a top-up, by a refund. Both ask for a reason. */
import { Alert, Button, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { OperatorAccount, OperatorTopUps } from '../answers.ts';
import { usd } from '../format.ts';
import { writeOnce } from '../retry-key.ts';
import { useFormRequest } from './form-dialog.tsx';
import { Failed } from './states.tsx';
import { Id, Time } from './values.tsx';

function useCorrection(
  path: string,
  message: (done: { amount: number }) => string,
  onDone: () => void,
) {
  const queries = useQueryClient();
  return useFormRequest({
    mutationFn: (body: object) => writeOnce<{ amount: number }>(path, body),
    onSuccess: async (done) => {
      notifications.show({ message: message(done) });
      onDone();
      await queries.invalidateQueries();
    },
    onError: () => queries.invalidateQueries(),
  });
}

export function AdjustForm({
  account,
  onDone,
}: {
  readonly account: OperatorAccount;
  readonly onDone: () => void;
}) {
  const [amount, setAmount] = useState('');
  const [reason, setReason] = useState('');
  const adjust = useCorrection(
    `/v1/operator/accounts/${account.id}/adjustments`,
    ({ amount: adjusted }) => `Adjusted by ${usd(adjusted)}.`,
    onDone,
  );
  const value = Number(amount);
  const isAmount = /^-?\d+(\.\d{1,6})?$/.test(amount.trim()) && value !== 0;
  const isValid = isAmount && reason.trim() !== '';
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isValid) adjust.mutate({ amount: amount.trim(), reason: reason.trim() });
      }}
    >
      <Stack gap="sm">
        <TextInput
          label="Amount in dollars"
          description="To debit the account, enter a negative amount."
          error={
            amount.trim() !== '' &&
            !isAmount &&
            'Enter an amount other than zero, with at most six decimals.'
          }
          maxLength={20}
          data-autofocus
          value={amount}
          onChange={(event) => setAmount(event.currentTarget.value)}
        />
        <ReasonInput value={reason} onValue={setReason} />
        {adjust.error && <Failed error={adjust.error} />}
        <Group justify="flex-end">
          <Button type="submit" disabled={!isValid} loading={adjust.isPending}>
            {isValid ? `Adjust by ${usd(value)}` : 'Adjust'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

export function RefundForm({
  topUp,
  onDone,
}: {
  readonly topUp: OperatorTopUps['topUps'][number];
  readonly onDone: () => void;
}) {
  const { refundableAmount: max } = topUp;
  const [amount, setAmount] = useState(max.toFixed(2));
  const [reason, setReason] = useState('');
  const refund = useCorrection(
    `/v1/operator/top-ups/${topUp.id}/refund`,
    ({ amount: refunded }) => `Requested a refund of ${usd(refunded)} to the card.`,
    onDone,
  );
  const value = Number(amount);
  const isAmount = /^\d+(\.\d{1,2})?$/.test(amount.trim()) && value > 0 && value <= max;
  const isValid = isAmount && reason.trim() !== '';
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isValid) refund.mutate({ amount: amount.trim(), reason: reason.trim() });
      }}
    >
      <Stack gap="sm">
        <Alert color="blue">
          The money leaves the balance now and returns to the card that paid {usd(topUp.amount)} on{' '}
          <Time iso={topUp.createdAt} />. Of this, {usd(max)} is unspent. If the refund fails, the
          money is credited again, and the list of top-ups says why.
        </Alert>
        <Id id={topUp.id} />
        <TextInput
          label="Amount in dollars"
          error={!isAmount && `Enter an amount in whole cents, at most ${usd(max)}.`}
          maxLength={20}
          data-autofocus
          value={amount}
          onChange={(event) => setAmount(event.currentTarget.value)}
        />
        <ReasonInput value={reason} onValue={setReason} />
        {refund.error && <Failed error={refund.error} />}
        <Group justify="flex-end">
          <Button type="submit" disabled={!isValid} loading={refund.isPending}>
            {isAmount ? `Refund ${usd(value)}` : 'Refund'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function ReasonInput({
  value,
  onValue,
}: {
  readonly value: string;
  readonly onValue: (value: string) => void;
}) {
  return (
    <Textarea
      label="Reason"
      description="Stored with your name. The owner sees the reason, but not your name."
      maxLength={500}
      autosize
      minRows={2}
      value={value}
      onChange={(event) => onValue(event.currentTarget.value)}
    />
  );
}
