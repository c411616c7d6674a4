/** Every workflow type that a worker offers. */
export { topUp } from './top-up.ts';
