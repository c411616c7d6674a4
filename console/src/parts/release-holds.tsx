/**
 * What a spend key or a budget that ends leaves behind: leases, and the calls that still run, for which there
 * is a choice.
 */
import { Checkbox, Text } from '@mantine/core';

interface ReleaseHoldsProps {
  readonly value: boolean;
  readonly onChange: (value: boolean) => void;
}

export function ReleaseHolds({ value, onChange }: ReleaseHoldsProps) {
  return (
    <>
      <Text>
        A lease that a developer has taken can still be spent until it ends, at most 24 hours after
        it was taken.
      </Text>
      <Checkbox
        label="Release what open holds have reserved (not leases)"
        description="Otherwise, the calls that placed the holds can still be paid for."
        checked={value}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    </>
  );
}
