/** The choice for calls that still run when a spend key or a budget ends. */
import { Checkbox } from '@mantine/core';

interface ReleaseHoldsProps {
  readonly value: boolean;
  readonly onChange: (value: boolean) => void;
}

export function ReleaseHolds({ value, onChange }: ReleaseHoldsProps) {
  return (
    <Checkbox
      label="Release what running calls have reserved"
      description="Otherwise, those calls can still be paid for."
      checked={value}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}
