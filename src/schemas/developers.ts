/** Schemas of what a developer sets for itself. */
import { Type, type Static } from 'typebox';
import { Closed, Id, PlainText } from './shapes.ts';

const ReturnUrl = Type.Union([PlainText(2_000, 'https://example.com/chat'), Type.Null()], {
  description: 'Where people return to after a top-up through a link of a refusal. Null: nowhere.',
  examples: ['https://example.com/chat'],
});

/** What is left out stays as it is. */
export const DeveloperChanges = Type.Object({ returnUrl: Type.Optional(ReturnUrl) });
export type DeveloperChanges = Static<typeof DeveloperChanges>;

export const DeveloperReply = Closed({
  developerId: Id('developer', 'Your developer id.'),
  returnUrl: ReturnUrl,
});
export type DeveloperReply = Static<typeof DeveloperReply>;
