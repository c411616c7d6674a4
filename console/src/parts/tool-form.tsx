/** Registers a tool, or changes its prices and description, archives it and takes it back into use. */
import { Button, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Tool } from '../answers.ts';
import { write } from '../api.ts';
import { changesOf } from '../changes.ts';
import { useFormRequest } from './form-dialog.tsx';
import { cardOf, RateCardFields, rowsOf } from './rate-card.tsx';
import { Failed } from './states.tsx';

interface FormProps {
  /** Undefined to register a new tool. */
  readonly tool: Pick<Tool, 'id' | 'name' | 'description' | 'price' | 'card'> | undefined;
  readonly isArchived: boolean;
  readonly onDone: () => void;
}

export function ToolForm({ tool, isArchived, onDone }: FormProps) {
  // As it was then: another tab may change it while the form is open.
  const [opened] = useState(
    tool && {
      description: tool.description,
      price: tool.price,
      card: tool.card ?? null,
      archived: isArchived,
    },
  );
  const [name, setName] = useState(tool?.name ?? '');
  const [price, setPrice] = useState(tool?.price == null ? '' : String(tool.price));
  const [units, setUnits] = useState(() => rowsOf(tool?.card ?? null));
  const card = cardOf(units);
  const [description, setDescription] = useState(tool?.description ?? '');
  const queries = useQueryClient();
  const save = useFormRequest({
    mutationFn: (archived: boolean) => {
      const fields = { description, price: price.trim() === '' ? null : Number(price), card };
      if (!tool || !opened) return write('/v1/tools', { name, ...fields });
      const changes = changesOf(opened, { ...fields, archived });
      return write(`/v1/tools/${tool.id}`, changes, { method: 'PATCH' });
    },
    onSuccess: async () => {
      onDone();
      await queries.invalidateQueries({ queryKey: ['tools'] });
    },
  });
  const isPriceValid = price.trim() === '' || /^(\d+(\.\d{1,6})?|\.\d{1,6})$/.test(price.trim());
  const isValid = isPriceValid && card !== undefined;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(isArchived);
      }}
    >
      <Stack gap="md">
        <TextInput
          label="Name"
          description={
            tool
              ? 'Charges and receipts use this name, so it cannot change.'
              : 'The name that charges use.'
          }
          required
          withAsterisk={false}
          maxLength={100}
          readOnly={tool !== undefined}
          data-autofocus={tool === undefined || undefined}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TextInput
          label="Price per call in dollars"
          description="Up to six decimals. Leave it empty if each charge states its amount or units."
          inputMode="decimal"
          leftSection="$"
          data-autofocus={tool !== undefined || undefined}
          value={price}
          error={isPriceValid ? undefined : 'Enter a number with up to six decimals.'}
          onChange={(event) => setPrice(event.currentTarget.value)}
        />
        <RateCardFields rows={units} onRows={setUnits} />
        <Textarea
          label="Description"
          maxLength={2_000}
          autosize
          minRows={2}
          maxRows={6}
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        {save.error && <Failed error={save.error} />}
        <Group justify="space-between">
          {tool ? (
            // It saves the price as well, as Save does.
            <Button
              variant="default"
              disabled={!isValid || save.isPending}
              onClick={() => save.mutate(!isArchived)}
            >
              {isArchived ? 'Unarchive' : 'Archive'}
            </Button>
          ) : (
            <span />
          )}
          <Button type="submit" loading={save.isPending} disabled={!isValid}>
            {tool ? 'Save' : 'Register tool'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
