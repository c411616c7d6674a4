/** Each upsert of search attributes is an event in the history, so only what has changed is sent. */
import { workflowInfo } from '@temporalio/workflow';
import type { SearchAttributeName } from '../src/domain/search-attributes.ts';

type Value<T> = T extends 'KEYWORD' ? string : T extends 'DOUBLE' ? number : boolean;

/** For `upsertSearchAttributes`: one, or none when it is shown already. Undefined takes it away. */
export function changedAttribute<T extends 'KEYWORD' | 'DOUBLE' | 'BOOL'>(
  name: SearchAttributeName,
  type: T,
  value: Value<T> | undefined,
) {
  const key = { name, type };
  const shown = workflowInfo().typedSearchAttributes.get(key);
  return shown === value ? [] : [{ key, value: value ?? null }];
}
