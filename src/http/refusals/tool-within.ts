/**
 * Under which name a refusal of a tool is counted. Callers choose the names of tools, so a developer has a
 * share of pairs of a code and a tool: past it, new pairs of a code are counted together.
 */
import type { ErrorCode } from '../../domain/errors.ts';

export const OTHER = '(other)';
/** Pairs of one developer. */
const PAIRS_MAX = 50;

/** `pairs` are those that are counted already, by `pairOf`. */
export function toolWithin(
  pairs: { readonly size: number; has(pair: string): boolean },
  code: ErrorCode,
  tool: string,
): string {
  return pairs.has(pairOf(code, tool)) || pairs.size < PAIRS_MAX ? tool : OTHER;
}

export function pairOf(code: ErrorCode, tool: string): string {
  return `${code} ${tool}`;
}
