/** The balance below which webhook endpoints get `balance.low`. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { LowBalance } from '../answers.ts';
import { read, write } from '../api.ts';
import { useEdits } from '../edits.ts';
import { inWordsOfForm } from '../field-labels.ts';
import { showAnswer } from '../show-answer.ts';
import { DollarsInput } from './dollars-input.tsx';
import { Card } from './page.tsx';
import { Failed, Loaded } from './states.tsx';

export function LowBalanceCard() {
  const setting = useQuery({
    queryKey: ['low-balance'],
    queryFn: () => read<LowBalance>('/v1/low-balance'),
  });
  return (
    <Card title="Low balance">
      <Loaded query={setting}>{(now) => <ThresholdForm now={now} />}</Loaded>
    </Card>
  );
}

function ThresholdForm({ now }: { readonly now: LowBalance }) {
  const saved = now.threshold === null ? '' : String(now.threshold);
  const { draft, edit, forget } = useEdits({ threshold: saved });
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: (sent: typeof draft) => {
      const asked = sent.threshold.trim();
      // Another tab may have saved a newer threshold.
      if (asked === saved) return read<LowBalance>('/v1/low-balance');
      const body = { threshold: asked === '' ? null : asked };
      return write<LowBalance>('/v1/low-balance', body, { method: 'PATCH' });
    },
    onSuccess: async (answer, sent) => {
      await showAnswer(queries, ['low-balance'], answer);
      forget(sent);
      notifications.show({ message: 'Saved.' });
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(draft);
      }}
    >
      <Stack gap="md">
        <DollarsInput
          label="Send balance.low when the balance falls below"
          description="Leave it empty for no event. The balance.exhausted event needs no setting."
          maw={420}
          value={draft.threshold}
          onValue={(threshold) => edit({ threshold })}
        />
        <Text size="sm" c="dimmed">
          One event is sent, and another only after a top-up or another credit has raised the
          balance again.
        </Text>
        {save.error && <Failed error={save.error} message={inWordsOfForm(save.error)} />}
        <Group>
          <Button type="submit" variant="default" loading={save.isPending}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
