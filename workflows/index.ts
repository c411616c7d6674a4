/** Every workflow type that a worker offers. */
export { grant } from './grant.ts';
export { invocation } from './invocation.ts';
export { topUp } from './top-up.ts';
