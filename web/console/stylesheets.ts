/** The console's style sheets, in the order of the cascade. They are served as one file. */
export const stylesheets = [
  'web/shared/tokens.css',
  ...[
    'base',
    'frame',
    'parts',
    'tables',
    'forms',
    'code',
    'media',
    'people',
    'records',
    'charts',
    'requests',
    'overview',
    'requests-media',
    'webhooks',
    'deliveries',
    'webhooks-media',
  ].map((name) => `web/console/client/${name}.css`),
]
