/** Colors and type. Dimmed text has more contrast than Mantine's default, on light and dark backgrounds. */
import { createTheme, type CSSVariablesResolver } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: 8,
  defaultRadius: 'md',
  autoContrast: true,
  respectReducedMotion: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, monospace',
  headings: {
    fontWeight: '650',
    sizes: { h1: { fontSize: '1.625rem' }, h2: { fontSize: '1.125rem' } },
  },
  components: {
    Table: { defaultProps: { verticalSpacing: 'sm', horizontalSpacing: 'lg' } },
    Paper: { defaultProps: { withBorder: true, p: 'lg' } },
    Modal: { defaultProps: { centered: true, closeButtonProps: { 'aria-label': 'Close' } } },
    Drawer: { defaultProps: { position: 'right', closeButtonProps: { 'aria-label': 'Close' } } },
  },
});

export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#5c636a',
    '--mantine-color-placeholder': '#6b7280',
    '--mantine-color-body': '#ffffff',
    '--console-ground': '#f7f8fa',
    '--mantine-color-error': '#c92a2a',
  },
  dark: {
    '--mantine-color-dimmed': '#a6adb4',
    '--mantine-color-placeholder': '#909296',
    '--console-ground': '#161719',
    '--mantine-color-error': '#ffa8a8',
    // The dot of a badge, which the primary shade would make as dark as the badge.
    '--mantine-color-gray-filled': 'var(--mantine-color-gray-6)',
  },
});
