/**
 * What a key or a budget that ends leaves behind: leases, and the calls that still run, for which there is a choice. It
 * can be made later too. A consumer key of the account has no leases, and its holds are those of all such keys, since a
 * hold does not say which of them placed it.
 */
import { Button, Checkbox, Group, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { write } from '../api.ts';
import { CancelButton, useFormRequest } from './form-dialog.tsx';
import { Failed } from './states.tsx';

interface ReleaseHoldsProps {
  readonly value: boolean;
  readonly onChange: (value: boolean) => void;
  readonly isOfAccount?: boolean;
}

export function ReleaseHolds({ value, onChange, isOfAccount = false }: ReleaseHoldsProps) {
  return (
    <>
      {!isOfAccount && <LeasesStay />}
      <Checkbox
        label={
          isOfAccount
            ? 'Release what open holds by all your consumer keys have reserved'
            : 'Release what open holds have reserved (not leases)'
        }
        description="Otherwise, the calls that placed them can still be charged, for at most 24 hours."
        checked={value}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    </>
  );
}

function LeasesStay() {
  return (
    <Text>
      A lease that a developer has taken can still be spent until it ends, at most 24 hours after it
      was taken.
    </Text>
  );
}

export const RELEASE = 'Release open holds';

/** What reads budgets and keys again, after a budget was closed or holds were released. */
export function useReadBudgetsAgain(): () => Promise<unknown> {
  const queries = useQueryClient();
  return () =>
    Promise.all(['budgets', 'keys'].map((name) => queries.invalidateQueries({ queryKey: [name] })));
}

interface ReleaseFormProps {
  /** What ended the key or the budget; it may be sent again. */
  readonly path: string;
  /** The keys that placed the holds, as they are called in the text. */
  readonly of: string;
  readonly isOfAccount?: boolean;
  readonly onDone: () => void;
}

export function ReleaseForm({ path, of, isOfAccount = false, onDone }: ReleaseFormProps) {
  const readAgain = useReadBudgetsAgain();
  const release = useFormRequest({
    mutationFn: () => write(path, { releaseHolds: true }),
    onSuccess: () => {
      notifications.show({ message: 'The open holds were released.' });
      onDone();
    },
    onSettled: readAgain,
  });
  return (
    <Stack gap="md">
      <Text>
        What the open holds of {of} have reserved becomes available again. The calls that placed
        them can no longer be paid for.
      </Text>
      {!isOfAccount && <LeasesStay />}
      {release.error && <Failed error={release.error} />}
      <Group justify="flex-end">
        <CancelButton />
        <Button loading={release.isPending} onClick={() => release.mutate()}>
          {RELEASE}
        </Button>
      </Group>
    </Stack>
  );
}
