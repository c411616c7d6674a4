/** Makes one charge from the page, as the code beside it would: with a consumer key that the developer pastes. */
import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { ApiFailure, newIdempotencyKey, write } from '../api.ts';
import { usd } from '../format.ts';
import { Failed } from './states.tsx';

interface TryChargeProps {
  readonly tool: string;
  readonly price: number;
}

export function TryCharge({ tool, price }: TryChargeProps) {
  const [apiKey, setApiKey] = useState('');
  const key = useRef(newIdempotencyKey());
  const queries = useQueryClient();
  const charge = useMutation({
    mutationFn: () =>
      write<Readonly<Record<string, unknown>>>(
        '/v1/charges',
        { apiKey: apiKey.trim(), tool, amount: price },
        { idempotencyKey: key.current },
      ),
    onSuccess: () => {
      key.current = newIdempotencyKey();
      void queries.invalidateQueries();
    },
    onError: (error) => {
      if (error instanceof ApiFailure && error.status > 0) key.current = newIdempotencyKey();
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        charge.mutate();
      }}
    >
      <Stack gap="sm">
        <Group align="flex-end" gap="sm">
          <TextInput
            label="Consumer key"
            description="Create one under Consumer keys to try it with your own balance."
            autoComplete="off"
            spellCheck={false}
            maxLength={200}
            required
            withAsterisk={false}
            style={{ flex: '1 1 16rem' }}
            value={apiKey}
            onChange={(event) => setApiKey(event.currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={charge.isPending}>
            Charge {usd(price)}
          </Button>
        </Group>
        {charge.error && <Failed error={charge.error} />}
        {charge.data && (
          <pre className="snippet" tabIndex={0} aria-label="Response">
            {JSON.stringify(charge.data, null, 2)}
          </pre>
        )}
      </Stack>
    </form>
  );
}
