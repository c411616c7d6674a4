/** Builds an example of a whole body from the examples of its parts. */
import type { TSchema } from 'typebox';

interface Shape {
  readonly examples?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
}

/** Members that a usual success lacks; examples show the usual case. */
const UNUSUAL = ['replayed', 'error', 'lastError'];

export function exampleOf(schema: TSchema | Shape): unknown {
  const shape = schema as Shape;
  if (shape.examples) return shape.examples[0];
  if ('const' in shape) return shape.const;
  if (shape.items) return [exampleOf(shape.items)];
  if (shape.anyOf?.[0]) return exampleOf(shape.anyOf[0]);
  const members = Object.entries(shape.properties ?? {});
  return Object.fromEntries(
    members
      .filter(([name]) => !UNUSUAL.includes(name))
      .map(([name, member]) => [name, exampleOf(member)]),
  );
}
