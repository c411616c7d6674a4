/** Each upsert of search attributes is a history event, so only changed attributes are sent. */
import { workflowInfo } from '@temporalio/workflow';
import type { SearchAttributeName } from '../src/domain/search-attributes.ts';

type Value<T> = T extends 'KEYWORD' ? string : T extends 'DOUBLE' ? number : boolean;

/** For `upsertSearchAttributes`: the attribute, or nothing if it already has the value. Undefined removes it. */
export function changedAttribute<T extends 'KEYWORD' | 'DOUBLE' | 'BOOL'>(
  name: SearchAttributeName,
  type: T,
  value: Value<T> | undefined,
) {
  const key = { name, type };
  const shown = workflowInfo().typedSearchAttributes.get(key);
  return shown === value ? [] : [{ key, value: value ?? null }];
}
